#include "command/status_line.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

#include "render/terminal.hpp"

namespace forksight {

StatusLine::StatusLine() : is_on_terminal_(render::is_terminal(STDERR_FILENO)) {}

void StatusLine::show(std::string_view text) {
  if (!is_on_terminal_) return;
  constexpr std::size_t kUsualColumns = 80;
  const std::size_t columns = render::find_columns(STDERR_FILENO).value_or(kUsualColumns);
  is_shown_ = true;
  fmt::print(stderr, "\r\x1b[K{}", text.substr(0, columns - 1));
  std::fflush(stderr);
}

void StatusLine::clear() {
  if (!is_shown_) return;
  is_shown_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace forksight
