#include "command/progress.hpp"

#include <fmt/core.h>

#include <utility>

namespace forksight {

using namespace std::chrono_literals;

Progress::Progress(std::string what) : what_(std::move(what)), due_(Clock::now() + 1s) {}

void Progress::show(std::size_t done, std::size_t total) {
  if (!line_.is_on_terminal() || Clock::now() < due_) return;
  due_ = Clock::now() + 100ms;
  line_.show(fmt::format("forksight: {}: {} of {}", what_, done, total));
}

}  // namespace forksight
