// The shim (libforksight.so) has hooks for functions of some libraries. Without the shim, the loader would bind a call
// of such a function to a definition in one of these libraries. This code finds the library for a given caller.
#pragma once

#include "loader/modules.hpp"

namespace forksight {

using Provides = bool (*)(const Module& module);

// Searches `root` and the libraries that it needs, breadth first, as the loader does. Returns the first object for
// which `provides` is true; null if there is none. If `root` was opened by dlopen, these objects are what the loader
// calls the local scope of `root`. This function does not take the loader's lock.
const Module* find_in_tree(const Module& root, Provides provides);

// Returns the address of the function `name` that the loader itself finds when it searches from the object of `caller`;
// 0 if there is none. This function takes the loader's lock. Callers use it if they cannot read the list of modules,
// because a filter refuses the system call.
std::uint64_t find_by_loader(std::uint64_t caller, const char* name);

}  // namespace forksight
