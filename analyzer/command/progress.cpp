#include "command/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

#include "render/terminal.hpp"

namespace forksight {

using namespace std::chrono_literals;

Progress::Progress(std::string what)
    : what_(std::move(what)), due_(Clock::now() + 1s), is_terminal_(render::is_terminal(STDERR_FILENO)) {}

void Progress::show(std::size_t done, std::size_t total) {
  if (!is_terminal_ || Clock::now() < due_) return;
  due_ = Clock::now() + 100ms;
  is_shown_ = true;
  fmt::print(stderr, "\r\x1b[Kforksight: {}: {} of {}", what_, done, total);
  std::fflush(stderr);
}

void Progress::clear() {
  if (!is_shown_) return;
  is_shown_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace forksight
