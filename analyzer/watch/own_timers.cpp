#include "watch/own_timers.hpp"

#include <csignal>

#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"
#include "watch/describe_wait.hpp"

namespace forksight::watch {

std::uint64_t find_timed_signals(std::int32_t pid, std::int32_t tid, std::uint64_t caught,
                                 proc::DescriptorTables& tables) {
  if (caught == 0) return 0;
  const auto timers = proc::read_file(proc::proc_path(tid, "timers"));
  // A descriptor with O_ASYNC sends SIGIO, or the signal that F_SETSIG selected. No file of /proc shows the selected
  // signal. So it may be any signal of `caught`.
  if (!timers || tables.may_send_signals(pid)) return caught;
  // No file of /proc shows whether alarm() or setitimer() armed a timer. If SIGALRM has a handler, a timer may be
  // armed. The other timers of setitimer() count processor time, which a sleeping thread does not use.
  const std::uint64_t alarm = std::uint64_t{1} << static_cast<unsigned>(SIGALRM - 1);
  return caught & (alarm | proc::parse_timer_signals(timers.text));
}

bool is_open_to_handlers(const proc::Round& round, const std::vector<WaitFacts>& facts) {
  for (std::size_t index = 0; index < round.threads.size(); ++index) {
    const proc::ThreadSample& thread = round.threads[index];
    if (thread.ended()) continue;
    const model::WaitKind kind = describe_wait(thread, index < facts.size() ? &facts[index] : nullptr).kind;
    if (kind != model::WaitKind::kFutex && kind != model::WaitKind::kVfork) return true;
  }
  return false;
}

}  // namespace forksight::watch
