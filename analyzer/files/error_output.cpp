#include "files/error_output.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace forksight::files {

void write_error(std::string_view text) {
  // A write beyond the limit of file sizes (ulimit -f) sends SIGXFSZ to the thread that writes. While the thread blocks
  // this signal, the write only fails. To ignore the signal would affect other threads, and programs that they start.
  sigset_t size;
  sigset_t before;
  sigemptyset(&size);
  sigaddset(&size, SIGXFSZ);
  ::pthread_sigmask(SIG_BLOCK, &size, &before);
  bool is_too_large = false;
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    is_too_large = count < 0 && errno == EFBIG;
    if (count <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  // Takes the signal, which would otherwise arrive when it is no longer blocked.
  const timespec at_once{};
  if (is_too_large) static_cast<void>(::sigtimedwait(&size, nullptr, &at_once));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace forksight::files
