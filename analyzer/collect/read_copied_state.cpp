#include "collect/read_copied_state.hpp"

#include <algorithm>
#include <string>

namespace forksight::collect {

using trace::RecordType;

namespace {

constexpr std::size_t kMostTimers = 64;  // at one fork
constexpr int kMostSignals = 64;

std::optional<model::TimerKind> kind_of(trace::TimerKind kind) {
  switch (kind) {
    case trace::TimerKind::kReal: return model::TimerKind::kReal;
    case trace::TimerKind::kPosix: return model::TimerKind::kPosix;
  }
  return std::nullopt;
}

std::optional<model::FileLockKind> kind_of(trace::FileLockKind kind) {
  switch (kind) {
    case trace::FileLockKind::kPosix: return model::FileLockKind::kPosix;
    case trace::FileLockKind::kFlock: return model::FileLockKind::kFlock;
    case trace::FileLockKind::kOfd: return model::FileLockKind::kOfd;
  }
  return std::nullopt;
}

std::optional<model::FileLockEvent> event_of(trace::FileLockEvent event) {
  switch (event) {
    case trace::FileLockEvent::kForeignUnlock: return model::FileLockEvent::kForeignUnlock;
    case trace::FileLockEvent::kReleased: return model::FileLockEvent::kReleased;
    case trace::FileLockEvent::kMissed: return model::FileLockEvent::kMissed;
  }
  return std::nullopt;
}

}  // namespace

void read_timer(TraceContext& trace, const TraceRecord& record) {
  model::Model& model = trace.model();
  const auto fixed = record.fixed<trace::TimerRecord>();
  const auto fork = trace.find(fixed.fork, RecordType::kFork);
  const auto kind = kind_of(fixed.kind);
  if (!fork || !kind || fixed.number < 1 || fixed.number > kMostSignals) return;
  auto& timers = model.forks[fork->index].timers;
  if (timers.size() < kMostTimers) timers.push_back({*kind, fixed.number, fixed.remaining_ns, fixed.interval_ns});
}

void read_file_lock(TraceContext& trace, const TraceRecord& record) {
  model::Model& model = trace.model();
  const auto fixed = record.fixed<trace::FileLockRecord>();
  const auto fork = trace.find(fixed.fork, RecordType::kFork);
  const auto kind = kind_of(fixed.kind);
  const auto event = event_of(fixed.event);
  if (!fork || !kind || !event) return;
  const bool is_known = trace.find_process(record.pid).has_value();
  if (!is_known && *event != model::FileLockEvent::kMissed) trace.child_of(fork->index, record.pid, record.time_ns);
  const std::size_t id = model.file_lock_uses.size();
  model::FileLockUse use;
  use.fork = fork->index;
  use.process = trace.process_of(record);
  use.tid = record.tid;
  use.time_ns = record.time_ns;
  use.kind = *kind;
  use.event = *event;
  use.fd = fixed.fd;
  const auto path = record.tail<trace::FileLockRecord>().first(fixed.path_bytes);
  use.path.assign(reinterpret_cast<const char*>(path.data()), path.size());
  use.start = fixed.start;
  use.bytes = fixed.bytes;
  use.owner = fixed.owner;
  use.other = fixed.other;
  use.file_changed = (fixed.flags & trace::kFileChanged) != 0;
  use.writer_known = (fixed.flags & trace::kWriterKnown) != 0;
  use.child_wrote = (fixed.flags & trace::kChildWrote) != 0;
  use.parent_wrote = (fixed.flags & trace::kParentWrote) != 0;
  const model::ProcessId process = use.process;
  model.file_lock_uses.push_back(std::move(use));
  trace.name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.file_lock_uses[id].stack; });
  trace.name_stack(
      process, fixed.taken, [id](model::Model & m) -> auto& { return m.file_lock_uses[id].taken_at; });
}

}  // namespace forksight::collect
