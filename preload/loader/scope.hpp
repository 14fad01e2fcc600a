// Which object's definition a caller would have been bound to without the shim. It does what the loader's search does,
// in the same order, without the loader's lock.
#pragma once

#include "loader/modules.hpp"

namespace forksight {

using Provides = bool (*)(const Module& module);

// The first of `root` and the libraries that it needs, breadth first, that provides it; null if none does. For a
// library opened by dlopen, this is the local scope.
const Module* find_in_tree(const Module& root, Provides provides);

// The same by the loader's own search, which takes its lock. For a caller that goes on into another library by that
// name, if the list of modules cannot be read because a filter refuses the system call. 0 if there is none.
std::uint64_t find_by_loader(std::uint64_t caller, const char* name);

}  // namespace forksight
