#include "files/size_signal.hpp"

#include <cerrno>
#include <ctime>

namespace forksight::files {
namespace {

sigset_t only_size_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

bool is_pending() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

HeldSizeSignal::HeldSizeSignal() {
  const sigset_t size = only_size_signal();
  ::pthread_sigmask(SIG_BLOCK, &size, &before_);
  was_pending_ = is_pending();
}

HeldSizeSignal::~HeldSizeSignal() {
  const int error = errno;
  const sigset_t size = only_size_signal();
  const timespec at_once{};
  if (!was_pending_ && is_pending()) static_cast<void>(::sigtimedwait(&size, nullptr, &at_once));
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace forksight::files
