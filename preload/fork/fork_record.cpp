#include "fork/fork_record.hpp"

#include "fork/atfork_list.hpp"
#include "guest/clock.hpp"
#include "record/fork_stack.hpp"
#include "record/writer.hpp"
#include "threads/fork_threads.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// Not inlined, because its frame is large. If it were inlined, the frame would already exist while append_fork_record
// calls other functions that need much stack.
__attribute__((noinline)) std::uint64_t append_threads(const Fork& fork, std::uint64_t stack, std::uint64_t handlers) {
  const Slot* const self = &fork.self;
  const std::uint64_t ordinal = next_fork_ordinal();
  const std::uint32_t threads = count_other_threads(self);
  Record record(trace::RecordType::kFork, sizeof(trace::ForkRecord) + threads * sizeof(trace::ForkThread) +
                                              fork.runtimes * sizeof(std::uint64_t));
  if (!record) return 0;
  auto* const tail = reinterpret_cast<trace::ForkThread*>(record.payload() + sizeof(trace::ForkRecord));
  const std::uint32_t filled = fill_threads(tail, threads, self);
  auto* references = reinterpret_cast<std::uint64_t*>(tail + filled);
  for (std::uint32_t i = 0; fork.runtimes != 0 && i < kMaxRuntimes; ++i) {
    if (self->runtimes[i].record != 0) *references++ = self->runtimes[i].record;
  }
  *record.as<trace::ForkRecord>() = {ordinal,       stack,      self->record,
                                     handlers,      fork.flags, filled,
                                     fork.runtimes, fork.tasks, fork.flags != 0 ? now_ns() - self->fork_entry_ns : 0};
  return record.commit();
}

}  // namespace

void append_fork_record(Fork& fork) {
  const std::uint64_t stack = record_fork_stack(fork.self, fork.self.fork_site);
  fork.record = append_threads(fork, stack, ensure_handlers_record());
  fork.self.fork_record = fork.record;
}

void append_forked(const Fork& fork, long child, int error) {
  if (fork.record == 0) return;
  append(trace::RecordType::kForked, trace::ForkedRecord{fork.record, static_cast<std::int32_t>(child),
                                                         child < 0 ? error : 0, now_ns() - fork.self.fork_entry_ns});
}

}  // namespace forksight
