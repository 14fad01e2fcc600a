#include "files/error_output.hpp"

#include <unistd.h>

#include <cerrno>

#include "files/size_signal.hpp"

namespace forksight::files {

void write_error(std::string_view text) {
  const HeldSizeSignal held;
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace forksight::files
