// Finds the object whose definition a caller would have been bound to without the shim. The search has the same order
// as the loader's, and does not take the loader's lock.
#pragma once

#include "loader/modules.hpp"

namespace forksight {

using Provides = bool (*)(const Module& module);

// Searches `root` and the libraries that it needs, breadth first, and returns the first object for which `provides` is
// true; null if there is none. For a library opened by dlopen, this is its local scope.
const Module* find_in_tree(const Module& root, Provides provides);

// The address of the function `name` that the loader itself finds when it searches from the object of `caller`; 0 if
// there is none. This function takes the loader's lock. It is used if the list of modules cannot be read, because a
// filter refuses the system call.
std::uint64_t find_by_loader(std::uint64_t caller, const char* name);

}  // namespace forksight
