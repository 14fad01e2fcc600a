#include "session/python.hpp"

#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "forksight/trace/format.hpp"
#include "proc/proc_fs.hpp"
#include "proc/restarted_calls.hpp"
#include "proc/thread_sample.hpp"

namespace forksight {
namespace {

constexpr char kVariable[] = "FORKSIGHT_PYTHON_SIGNAL";
// A real-time signal far from both ends of the range, because runtimes and debuggers use signals near the ends.
constexpr char kOurChoice[] = "52";
constexpr std::chrono::milliseconds kAnswerLimit{500};
constexpr std::chrono::milliseconds kPause{5};

std::uint64_t bit_of(int signal) { return std::uint64_t{1} << static_cast<unsigned>(signal - 1); }

// Returns the signal that the shim handles in the process now. Returns 0 in three cases: there is no such signal, the
// Python stacks of the process are already known, or the process has called exec since the shim recorded the signal.
// After an exec, the signal would either end the process, because that is the default action, or run a handler of the
// new program.
int find_signal(const model::Model& quick, const proc::ProcessKey& key) {
  const auto shim_start = proc::find_shim(key.pid);
  if (shim_start.value_or(0) == 0) return 0;
  int signal = 0;
  for (const model::Process& process : quick.processes) {
    const bool is_it = process.pid == key.pid && (process.start_ticks == 0 || process.start_ticks == key.start_ticks);
    if (is_it && !process.python && process.shim_start == *shim_start) signal = process.python_signal;
  }
  return signal;
}

// True if a thread would run the handler of the signal, and the handler would disturb no thread. The signal is sent to
// the process. So the kernel may choose any thread that does not block the signal.
bool would_answer(std::int32_t pid, int signal) {
  bool refused = false;
  const auto round = proc::sample_round(pid, refused);
  if (!round) return false;
  bool does_any = false;
  for (const proc::ThreadSample& thread : round->threads) {
    if (thread.ended() || (thread.status.blocked & bit_of(signal)) != 0) continue;
    if ((thread.status.caught & bit_of(signal)) == 0 || !proc::is_restarted_after_handler(pid, thread.call)) return false;
    does_any = true;
  }
  return does_any;
}

bool has_answered(std::int32_t pid, int signal) {
  bool refused = false;
  const auto round = proc::sample_round(pid, refused);
  if (!round) return refused;
  return std::all_of(round->threads.begin(), round->threads.end(), [&](const proc::ThreadSample& thread) {
    const bool is_on_its_way = ((thread.status.pending | thread.status.shared_pending) & bit_of(signal)) != 0;
    return thread.ended() || (thread.status.state == 'S' && !is_on_its_way);
  });
}

bool send_request(const proc::ProcessKey& key, int signal) {
  const long fd = ::syscall(SYS_pidfd_open, key.pid, 0);
  if (fd < 0) return false;
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = reinterpret_cast<void*>(trace::kPythonRequest);
  const bool sent = proc::is_same_process(key) && ::syscall(SYS_pidfd_send_signal, fd, signal, &info, 0) == 0;
  ::close(static_cast<int>(fd));
  return sent;
}

// False for a stalled process: the signal would interrupt a sleep in an atfork handler, or a wait for a timer, and such
// a wait may end by itself.
bool is_proven(model::Liveness liveness) {
  return liveness == model::Liveness::kDead || liveness == model::Liveness::kDeadButForSignal ||
         liveness == model::Liveness::kVictim;
}

// True if the wait of the process has no way out, or the process waits for something that its fork broke. forksight
// asks no other process, because forksight must not wake a program that is only idle.
bool is_worth_asking(const model::Model& quick, const watch::Verdict& verdict) {
  const auto is_open = [&](const model::Touch& touch) {
    return !touch.returned && !touch.cured && quick.processes[touch.process].pid == verdict.key.pid;
  };
  return verdict.ways_out.empty() || std::ranges::any_of(quick.touches, is_open);
}

}  // namespace

std::string python_signal_value() {
  const char* const given = std::getenv(kVariable);
  return given == nullptr ? kOurChoice : given;
}

void request_python_stacks(const model::Model& quick, const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                           watch::Supervisor& supervisor) {
  std::vector<std::pair<std::int32_t, int>> asked;
  for (const auto& [key, verdict] : stuck) {
    if (!is_proven(verdict.liveness)) continue;
    const int signal = is_worth_asking(quick, verdict) ? find_signal(quick, key) : 0;
    if (signal == 0 || !would_answer(key.pid, signal)) continue;
    if (!send_request(key, signal)) continue;
    supervisor.expect_own_wakeup(key);
    asked.emplace_back(key.pid, signal);
  }
  const auto deadline = std::chrono::steady_clock::now() + kAnswerLimit;
  while (!asked.empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPause);
    std::erase_if(asked, [](const auto& entry) { return has_answered(entry.first, entry.second); });
  }
}

}  // namespace forksight
