// Records a call that a forked child makes into a library that was initialised before the fork (CUDA, MPI, UCX): the
// name of the function, the stack of its caller, and its result.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"

namespace forksight {

// Writes the record of the call, and returns it; 0: none was written. `fork` is the fork that made the child.
std::uint64_t begin_function_touch(trace::TouchKind kind, std::uint64_t fork, const char* name, std::uint64_t function,
                                   const Site& site);
void end_function_touch(std::uint64_t touch, int result);

}  // namespace forksight
