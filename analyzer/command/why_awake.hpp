// What is said of processes that are not stuck for good: what each of their threads waits in.
#pragma once

#include <string>

#include "inspect/live_tree.hpp"
#include "model/model.hpp"

namespace forksight {

// Lines of text; "" if there is no such process. `model` was built of the same look: it has the stacks.
std::string describe_awake(const inspect::LiveTree& tree, const model::Model& model);

}  // namespace forksight
