#include "command/status_line.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include "files/error_output.hpp"
#include "render/terminal.hpp"

namespace forksight {

StatusLine::StatusLine() : is_on_terminal_(render::is_terminal(STDERR_FILENO)) {}

void StatusLine::show(std::string_view text) {
  if (!is_on_terminal_) return;
  constexpr std::size_t kUsualColumns = 80;
  const std::size_t columns = render::find_columns(STDERR_FILENO).value_or(kUsualColumns);
  is_shown_ = true;
  files::write_error(fmt::format("\r\x1b[K{}", text.substr(0, columns - 1)));
}

void StatusLine::clear() {
  if (!is_shown_) return;
  is_shown_ = false;
  files::write_error("\r\x1b[K");
}

}  // namespace forksight
