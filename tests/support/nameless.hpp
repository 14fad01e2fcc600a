// Turns a model into one whose symbols have not been looked up and whose stacks have not been unwound.
#pragma once

#include "model/model.hpp"

namespace forksight::test {

// Removes what symbols and unwinding add to a model: the names of functions and variables, the lines, and all frames.
model::Model without_names(model::Model model);

}  // namespace forksight::test
