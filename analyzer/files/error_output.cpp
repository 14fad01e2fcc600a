#include "files/error_output.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace forksight::files {

void write_error(std::string_view text) {
  // While SIGXFSZ is ignored, a write beyond the limit of file sizes (ulimit -f) fails, and does not end forksight.
  void (*const before)(int) = std::signal(SIGXFSZ, SIG_IGN);
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  std::signal(SIGXFSZ, before);
}

}  // namespace forksight::files
