// Finds the names of variables for which threads wait. A look from outside noted the address and its module.
#pragma once

#include "model/model.hpp"

namespace forksight::collect {

// Fills Wait::object_name if the word is a global of a module with symbols.
void name_waits(model::Model& model);

}  // namespace forksight::collect
