#include "session/signals.hpp"

#include <poll.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "proc/proc_fs.hpp"

namespace forksight {
namespace {

constexpr int kRead[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
// The kernel sends SIGPIPE if the report goes to a pipe that nobody reads. The kernel sends SIGTTOU if forksight writes
// from the background to a terminal that forbids this. These two signals must neither kill nor stop forksight.
// forksight blocks these signals and SIGXFSZ, and does not ignore them, because CMD would inherit an ignored signal
// through its exec.
constexpr int kOnlyBlocked[] = {SIGPIPE, SIGTTOU};

}  // namespace

RunSignals::RunSignals() {
  sigset_t size;
  sigemptyset(&size);
  sigaddset(&size, SIGXFSZ);
  ::sigprocmask(SIG_BLOCK, &size, &before_.mask);
}

void RunSignals::begin() {
  sigset_t read;
  sigemptyset(&read);
  for (const int signal : kRead) sigaddset(&read, signal);
  sigset_t blocked = read;
  for (const int signal : kOnlyBlocked) sigaddset(&blocked, signal);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  // forksight may have inherited that SIGCHLD is ignored. Then the kernel would reap CMD and drop its exit status.
  struct sigaction child {};
  child.sa_handler = SIG_DFL;
  struct sigaction previous {};
  ::sigaction(SIGCHLD, &child, &previous);
  before_.ignores_child = previous.sa_handler == SIG_IGN;
  fd_ = ::signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
}

RunSignals::~RunSignals() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<signalfd_siginfo> RunSignals::wait(std::chrono::steady_clock::time_point until) const {
  for (;;) {
    signalfd_siginfo info{};
    if (::read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) return info;
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return std::nullopt;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
    pollfd waiting{fd_, POLLIN, 0};
    ::ppoll(&waiting, 1, &timeout, nullptr);
  }
}

void send_signal(const proc::ProcessKey& key, int signal) {
  const long fd = ::syscall(SYS_pidfd_open, key.pid, 0);
  if (fd < 0) {
    if (errno == ENOSYS && proc::is_same_process(key)) ::kill(key.pid, signal);
    return;
  }
  if (proc::is_same_process(key)) ::syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0);
  ::close(static_cast<int>(fd));
}

}  // namespace forksight
