// Makes a model as it is before symbols are looked up and stacks are unwound.
#pragma once

#include "model/model.hpp"

namespace forksight::test {

// Removes what symbols and unwinding add to a model: the names of functions and variables, the lines, and all frames.
model::Model without_names(model::Model model);

}  // namespace forksight::test
