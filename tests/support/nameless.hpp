// A model as it is before its names are looked up.
#pragma once

#include "model/model.hpp"

namespace forksight::test {

// Without all that symbols and unwinding say: functions, lines, variables, and frames at all.
model::Model without_names(model::Model model);

}  // namespace forksight::test
