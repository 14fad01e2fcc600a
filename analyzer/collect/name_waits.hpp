// Finds the names of variables for which threads wait. When the process was examined from outside, only the address and
// the module of each variable were noted.
#pragma once

#include "files/open_file.hpp"
#include "model/model.hpp"

namespace forksight::collect {

// Fills Wait::object_name if the word is a global of a module with symbols. `owner`: the user whose run log names the
// modules.
void name_waits(const files::Owner& owner, model::Model& model);

}  // namespace forksight::collect
