#include "watch/own_timers.hpp"

#include <csignal>

#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"
#include "watch/describe_wait.hpp"
#include "watch/proof.hpp"

namespace forksight::watch {
namespace {

// No file tells whether alarm() or setitimer() armed a timer: where SIGALRM has a handler, one may be. Their other
// timers count time on a processor, which a thread that sleeps does not use.
bool may_have_timer(std::int32_t pid, std::uint64_t caught) {
  if ((caught & 1ULL << (SIGALRM - 1)) != 0) return true;
  return caught != 0 && (caught & proc::parse_timer_signals(proc::read_file(proc::proc_path(pid, "timers")).text)) != 0;
}

}  // namespace

bool may_timer_end(std::int32_t pid, const proc::Round& round, const std::vector<WaitFacts>& facts) {
  std::uint64_t caught = 0;
  bool is_open_to_handlers = false;
  for (std::size_t index = 0; index < round.threads.size(); ++index) {
    const proc::ThreadSample& thread = round.threads[index];
    if (thread.ended()) continue;
    caught |= thread.status.caught;
    const model::WaitKind kind = describe_wait(thread, index < facts.size() ? &facts[index] : nullptr).kind;
    is_open_to_handlers |= kind != model::WaitKind::kFutex && kind != model::WaitKind::kVfork;
  }
  return is_open_to_handlers && may_have_timer(pid, caught & ~kReservedSignals);
}

}  // namespace forksight::watch
