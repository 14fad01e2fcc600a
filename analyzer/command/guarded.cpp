#include "command/guarded.hpp"

#include <sys/wait.h>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "command/exit_status.hpp"
#include "command/output.hpp"
#include "files/dead_places.hpp"
#include "proc/reader_rights.hpp"
#include "render/terminal.hpp"
#include "symbols/debug_files.hpp"

namespace forksight {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{200};  // how long a child may go on after a signal
constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile std::sig_atomic_t g_received = 0;
volatile std::sig_atomic_t g_is_from_terminal = 0;

void note_signal(int signal, siginfo_t* info, void* /*context*/) {
  g_received = signal;
  g_is_from_terminal = info->si_code == SI_KERNEL ? 1 : 0;
}

// Notes the signals that would end this process, so that these signals can be sent to the child. Gives SIGCHLD its
// default action: if the caller ignores it, waitpid() does not return the status of a child.
class ForwardedSignals {
 public:
  ForwardedSignals() {
    g_received = 0;
    ::sigaction(SIGCHLD, nullptr, &child_before_);
    ::signal(SIGCHLD, SIG_DFL);
    for (std::size_t i = 0; i < kForwarded.size(); ++i) {
      struct sigaction before {};
      ::sigaction(kForwarded[i], nullptr, &before);
      before_[i] = before;
      if (before.sa_handler != SIG_DFL) continue;
      struct sigaction action {};
      action.sa_flags = SA_SIGINFO;
      action.sa_sigaction = note_signal;
      ::sigaction(kForwarded[i], &action, nullptr);
    }
  }
  ~ForwardedSignals() { restore(); }
  ForwardedSignals(const ForwardedSignals&) = delete;
  ForwardedSignals& operator=(const ForwardedSignals&) = delete;

  void restore() const {
    for (std::size_t i = 0; i < kForwarded.size(); ++i) ::sigaction(kForwarded[i], &before_[i], nullptr);
    ::sigaction(SIGCHLD, &child_before_, nullptr);
  }

 private:
  std::array<struct sigaction, kForwarded.size()> before_{};
  struct sigaction child_before_ {};
};

// Chooses the signals for the child: first the signal that this process got, then, after kPatience, SIGKILL.
class PassedSignal {
 public:
  int next() {
    const Clock::time_point now = Clock::now();
    if (g_received == 0 || is_over_) return 0;
    if (!since_) {
      since_ = now;
      // The terminal sends a signal to all processes of the group, so the child has got it already.
      return g_is_from_terminal != 0 ? 0 : g_received;
    }
    is_over_ = now - *since_ >= kPatience;
    return is_over_ ? SIGKILL : 0;
  }

 private:
  std::optional<Clock::time_point> since_;
  bool is_over_ = false;
};

// True if this process got a signal that asks it to end, and the same signal or SIGKILL has ended the child. If another
// signal has ended the child, the child has failed: it has crashed, or the kernel has ended it because there is no more
// memory.
bool is_asked_to_end(int signal) { return g_received != 0 && (signal == g_received || signal == SIGKILL); }

int finish(const guard::Answer& answer, const ForwardedSignals& signals) {
  if (answer.failure == guard::Failure::kUnending) {
    signals.restore();
    ::raise(g_received);
  }
  if (answer.failure != guard::Failure::kNone) {
    for (const std::string& sentence : files::describe_dead_places()) say_error(sentence);
    if (!files::has_dead_places()) say_error(guard::describe_failure(answer));
    return as_int(ExitStatus::kUnreadable);
  }
  if (answer.is_output_refused) return as_int(ExitStatus::kUnreadable);
  const bool is_written = answer.out.empty() || write_out(answer.out);
  if (WIFEXITED(answer.status)) return is_written ? WEXITSTATUS(answer.status) : as_int(ExitStatus::kUnreadable);
  const int signal = WTERMSIG(answer.status);
  if (is_asked_to_end(signal)) {
    signals.restore();
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  say_error(guard::describe_failure(answer));
  return as_int(ExitStatus::kUnreadable);
}

}  // namespace

int run_guarded(const guard::Work& work, const GuardedOptions& options) {
  render::remember_terminals();
  // If SIGXFSZ is ignored, a write beyond the limit of file sizes (ulimit -f) fails, and the command reports the
  // failure.
  ::signal(SIGXFSZ, SIG_IGN);
  const ForwardedSignals signals;
  PassedSignal passed;
  const guard::Answer answer = guard::run_child(
      work, {.next_signal = [&] { return passed.next(); },
             .in_child = [&] { signals.restore(); },
             .on_output = options.output == Output::kAtOnce ? write_out : std::function<bool(std::string_view)>(),
             // A debuginfod server may send debug information for many minutes. So there is no time limit if servers
             // may be asked.
             .limit = symbols::may_ask_servers() ? std::nullopt : options.limit,
             .examines_processes = options.examines_processes});
  if (answer.has_child) return finish(answer, signals);
  signals.restore();
  if (proc::may_give_up_user()) {
    say_error(guard::describe_failure(answer));
    return as_int(ExitStatus::kUnreadable);
  }
  // No child could be made. This process does nothing after the work, so it can give up the same rights as a child.
  (void)proc::give_up_changing({.is_server_asked = symbols::may_ask_servers()});
  return guard::run_here(work);
}

}  // namespace forksight
