// The shim (libforksight.so) has hooks for functions of some libraries. Without the shim, the loader would bind a call
// of such a function to a definition in one of these libraries. This code finds the library for a given caller.
#pragma once

#include "loader/modules.hpp"

namespace forksight {

using Provides = bool (*)(const Module& module);

// Searches `root` and the libraries that `root` needs, breadth first, as the loader does. Searches at most 48 objects.
// Returns the first object for which `provides` is true; null if there is none. If `root` was opened by dlopen, `root`
// and the libraries that it needs are the local scope of `root`, in the loader's terms. This function does not take the
// loader's lock.
const Module* find_in_tree(const Module& root, Provides provides);

// Returns the address of the function `name` that the loader itself finds when it searches from the object of `caller`;
// 0 if there is none. This function takes the loader's lock. So callers use it only if find_in_tree() and a search of
// all modules found nothing. For example, both searches may find nothing because a seccomp filter of the program
// refuses the system calls that read the list of modules.
std::uint64_t find_by_loader(std::uint64_t caller, const char* name);

}  // namespace forksight
