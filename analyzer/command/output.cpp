#include "command/output.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "render/printable.hpp"

namespace forksight {

bool write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return true;
  say_error(fmt::format("standard output: {}", std::strerror(errno)));
  return false;
}

void say_error(std::string_view sentence) {
  // fmt::print() is not used here, because it throws if standard error cannot be written.
  std::fputs(fmt::format("forksight: error: {}\n", render::printable(sentence)).c_str(), stderr);
}

}  // namespace forksight
