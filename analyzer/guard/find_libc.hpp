// Finds out in a child process which libc another process has. The proofs of `run` and `ci` need this four times a
// second, and the file of that libc may be one that the owner of the process has made.
#pragma once

#include <cstdint>

#include "forksight/abi/glibc.hpp"

namespace forksight::guard {

// Starts a child for the question. If the child gives no valid answer, all members of the result are unknown.
abi::Libc find_libc(std::int32_t tid);

// From now on, this process does not parse the files of other processes. It starts a child for it. main() calls this
// first of all. In a child that has a files::Reader it has no effect.
void parse_only_in_children();

}  // namespace forksight::guard
