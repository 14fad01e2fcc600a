// Records the locks of standard streams that stay locked in a child, because the fork did not reset them.
#pragma once

#include <cstdint>

#include "record/fork_in_progress.hpp"

namespace forksight {

namespace at_fork {
struct Streams {
  static void starts(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
