#include "command/output.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "files/error_output.hpp"
#include "files/size_signal.hpp"
#include "render/terminal.hpp"
#include "render/text.hpp"

namespace forksight {

bool write_out(std::string_view text) {
  const files::HeldSizeSignal held;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return true;
  say_error(fmt::format("standard output: {}", std::strerror(errno)));
  return false;
}

void say_error(std::string_view sentence) {
  // On a terminal the line is wrapped between words. Elsewhere it stays whole: a log has one line for each error.
  render::TextOptions options;
  if (render::is_terminal(STDERR_FILENO)) options.columns = render::find_columns(STDERR_FILENO);
  files::write_error(render::render_line(fmt::format("forksight: error: {}", sentence), options));
}

}  // namespace forksight
