#include "watch/own_timers.hpp"

#include <csignal>

#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"
#include "watch/describe_wait.hpp"
#include "watch/proof.hpp"
#include "watch/ways_out.hpp"

namespace forksight::watch {
std::uint64_t find_timer_signals(std::int32_t tid) {
  return proc::parse_timer_signals(proc::read_file(proc::proc_path(tid, "timers")).text);
}

std::uint64_t find_ending_signals(const ProcessEvidence& evidence) {
  // These signals stop a process, or do nothing, if the process has no handler for them.
  constexpr std::uint64_t kHarmless = bit_of_signal(SIGCHLD) | bit_of_signal(SIGCONT) | bit_of_signal(SIGURG) |
                                      bit_of_signal(SIGWINCH) | bit_of_signal(SIGSTOP) | bit_of_signal(SIGTSTP) |
                                      bit_of_signal(SIGTTIN) | bit_of_signal(SIGTTOU);
  std::uint64_t signals = 0;
  for (const proc::ThreadSample& thread : evidence.second.threads) {
    const proc::Status& status = thread.status;
    if (!thread.ended()) signals |= evidence.timer_signals & ~status.caught & ~status.ignored & ~status.blocked;
  }
  // glibc sends signal 32 to its own thread for timers (SIGEV_THREAD), which waits for it.
  return signals & ~kHarmless & ~(evidence.has_libc ? kReservedSignals : 0);
}

std::uint64_t find_timed_signals(std::int32_t pid, std::int32_t tid, std::uint64_t caught,
                                 proc::DescriptorTables& tables) {
  if (caught == 0) return 0;
  const auto timers = proc::read_file(proc::proc_path(tid, "timers"));
  // A descriptor with O_ASYNC sends SIGIO, or the signal that F_SETSIG selected. No file of /proc shows the selected
  // signal. So it may be any signal of `caught`.
  if (!timers || tables.may_send_signals(pid)) return caught;
  // No file of /proc shows whether alarm() or setitimer() armed a timer. If SIGALRM has a handler, a timer may be
  // armed. The other timers of setitimer() count processor time, which a sleeping thread does not use.
  return caught & (bit_of_signal(SIGALRM) | proc::parse_timer_signals(timers.text));
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
