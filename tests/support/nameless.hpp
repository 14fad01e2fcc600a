// Makes a model as it is before names are looked up.
#pragma once

#include "model/model.hpp"

namespace forksight::test {

// Removes what symbols and unwinding give: functions, lines, variables, and all frames.
model::Model without_names(model::Model model);

}  // namespace forksight::test
