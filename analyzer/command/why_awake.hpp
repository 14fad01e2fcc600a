// What is said of processes that are not stuck for good: what each of their threads waits in.
#pragma once

#include <string>

#include "inspect/live_tree.hpp"

namespace forksight {

// Lines of text; "" if there is no such process.
std::string describe_awake(const inspect::LiveTree& tree);

}  // namespace forksight
