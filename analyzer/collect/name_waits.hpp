// The names of variables that threads wait for, found from what was seen from outside: an address and its module.
#pragma once

#include "model/model.hpp"

namespace forksight::collect {

// Fills Wait::object_name if the word is a global of a module with symbols.
void name_waits(model::Model& model);

}  // namespace forksight::collect
