#include "command/guarded.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command/exit_status.hpp"
#include "command/output.hpp"
#include "files/dead_places.hpp"
#include "proc/blocked_call.hpp"
#include "proc/own_process.hpp"
#include "proc/proc_fs.hpp"
#include "proc/reader_rights.hpp"
#include "render/terminal.hpp"
#include "symbols/debug_files.hpp"

namespace forksight {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kMostDeadPlaces = 4;
constexpr auto kPace = 200ms;
// A call for a file that has blocked for so long does not return soon.
constexpr auto kLongestCall = 2s;
constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile std::sig_atomic_t g_received = 0;
volatile std::sig_atomic_t g_is_from_terminal = 0;

void note_signal(int signal, siginfo_t* info, void* /*context*/) {
  g_received = signal;
  g_is_from_terminal = info->si_code == SI_KERNEL ? 1 : 0;
}

// Notes the signals that would end this process, so that they can be sent to the child. Gives SIGCHLD its default
// action: if the caller ignores it, waitpid() does not return the status of a child.
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

struct Pipe {
  int read = -1;
  int write = -1;
};

std::optional<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{ends[0], ends[1]};
}

[[noreturn]] void be_child(pid_t parent, const Pipe& out, const Pipe& error, const std::function<int()>& work) {
  proc::set_guard(parent);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(as_int(ExitStatus::kUnreadable));
  // A child that is blocked for ever must not hold the caller's files open.
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out.write, STDOUT_FILENO);
  ::dup2(error.write, STDERR_FILENO);
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
  (void)proc::give_up_changing({.is_server_asked = symbols::may_ask_servers()});
  int status = as_int(ExitStatus::kUnreadable);
  try {
    status = work();
  } catch (const std::exception& failure) {
    say_error(failure.what());
  } catch (...) {
    say_error("an unknown failure inside of a library");
  }
  std::fflush(stdout);
  std::fflush(stderr);
  ::_exit(status);
}

// Appends what can be read now. False: the other end is closed.
bool drain(int fd, std::string& text) {
  std::array<char, 1U << 16U> piece;
  const ssize_t got = ::read(fd, piece.data(), piece.size());
  if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

class Guard {
 public:
  explicit Guard(pid_t child) : child_(child) {}

  struct End {
    std::optional<int> status;                  // as of wait(2); nullopt: the child is blocked for ever
    std::vector<files::DeadPlace> dead_places;  // where it is blocked
    std::string out;
  };

  End watch(int out, int error) {
    End end;
    std::array<pollfd, 2> polled{{{out, POLLIN, 0}, {error, POLLIN, 0}}};
    for (;;) {
      const int ready =
          ::poll(polled.data(), polled.size(), static_cast<int>(std::chrono::milliseconds(kPace).count()));
      if (ready > 0) {
        if (polled[0].revents != 0 && !drain(out, end.out)) polled[0].fd = -1;
        if (polled[1].revents != 0 && !pass_on(error)) polled[1].fd = -1;
        if (polled[0].fd >= 0 || polled[1].fd >= 0) continue;
      }
      int status = 0;
      const bool is_closed = polled[0].fd < 0 && polled[1].fd < 0;
      if (::waitpid(child_, &status, is_closed ? 0 : WNOHANG) == child_) {
        while (polled[0].fd >= 0 && drain(out, end.out)) {
        }
        while (polled[1].fd >= 0 && pass_on(error)) {
        }
        end.status = status;
        return end;
      }
      if (g_received != 0) {
        if (signals_sent_ == 2) return end;  // not even SIGKILL has ended the child
        // The terminal sends a signal to all processes of the group, so the child has got it already.
        const bool has_it = signals_sent_ == 0 && g_is_from_terminal != 0;
        if (!has_it) ::kill(child_, signals_sent_ == 0 ? g_received : SIGKILL);
        ++signals_sent_;
      }
      end.dead_places = look();
      if (!end.dead_places.empty()) return end;
    }
  }

 private:
  static bool pass_on(int fd) {
    std::string text;
    const bool is_open = drain(fd, text);
    std::fwrite(text.data(), 1, text.size(), stderr);
    return is_open;
  }

  // Looks for a thread of the child that has been in one call for a file for too long.
  std::vector<files::DeadPlace> look() {
    const Clock::time_point now = Clock::now();
    std::map<std::int32_t, std::pair<std::string, Clock::time_point>> calls;
    std::vector<files::DeadPlace> found;
    for (const std::int32_t tid : proc::list_numbers(proc::proc_path(child_, "task")).numbers) {
      const auto call = proc::find_blocked_call(child_, tid);
      if (!call) continue;
      const auto before = calls_.find(tid);
      const bool is_same = before != calls_.end() && before->second.first == call->identity;
      const Clock::time_point since = is_same ? before->second.second : now;
      if (now - since >= kLongestCall) {
        for (files::DeadPlace& place : proc::find_places(*call, child_, tid)) found.push_back(std::move(place));
      }
      calls.emplace(tid, std::pair(call->identity, since));
    }
    calls_ = std::move(calls);
    return found;
  }

  pid_t child_;
  int signals_sent_ = 0;
  std::map<std::int32_t, std::pair<std::string, Clock::time_point>> calls_;  // by thread: the call, and since when
};

bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGABRT;
}

int finish(int status, const std::string& out, const ForwardedSignals& signals) {
  const bool is_written = out.empty() || write_out(out);
  if (WIFEXITED(status)) return is_written ? WEXITSTATUS(status) : as_int(ExitStatus::kUnreadable);
  const int signal = WTERMSIG(status);
  if (!is_crash(signal)) {
    signals.restore();
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  say_error(fmt::format("the process that reads files and memory for forksight was ended by signal {} ({})", signal,
                        ::strsignal(signal)));
  return as_int(ExitStatus::kUnreadable);
}

}  // namespace

int run_guarded(const std::function<int()>& work) {
  render::remember_terminals();
  const ForwardedSignals signals;
  for (std::size_t known = 0; known <= kMostDeadPlaces; ++known) {
    const auto out = make_pipe();
    const auto error = make_pipe();
    std::fflush(stdout);
    std::fflush(stderr);
    const pid_t self = ::getpid();
    const pid_t child = out && error ? ::fork() : -1;
    if (child == 0) {
      signals.restore();
      be_child(self, *out, *error, work);
    }
    if (child < 0) {
      signals.restore();
      return work();
    }
    ::close(out->write);
    ::close(error->write);
    Guard::End end = Guard(child).watch(out->read, error->read);
    ::close(out->read);
    ::close(error->read);
    if (end.status) return finish(*end.status, end.out, signals);
    if (end.dead_places.empty()) {
      signals.restore();
      ::raise(g_received);
    }
    ::kill(child, SIGKILL);  // may not end the child until the file system answers, or is unmounted
    bool is_new = false;
    for (files::DeadPlace& place : end.dead_places) is_new = files::add_dead_place(std::move(place)) || is_new;
    if (!is_new) break;  // the blocked call ignores the list of dead places, so another try would block, too
  }
  for (const std::string& sentence : files::describe_dead_places()) say_error(sentence);
  return as_int(ExitStatus::kUnreadable);
}

}  // namespace forksight
