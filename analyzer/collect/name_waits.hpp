// The variables that threads wait for, by what was seen of them from outside: an address and the module it is in.
#pragma once

#include "model/model.hpp"

namespace forksight::collect {

// Fills Wait::object_name where the word is a global of a module whose symbols are there.
void name_waits(model::Model& model);

}  // namespace forksight::collect
