// Finds out in a child process which libc another process has. The proofs of `run` and `ci` need the answer four times
// a second. The libc file is not to be trusted, because the owner of the process may have made it.
#pragma once

#include <cstdint>

#include "forksight/abi/glibc.hpp"

namespace forksight::guard {

// Starts a child that finds the libc. If the child gives no valid answer, all members of the result are unknown.
abi::Libc find_libc(std::int32_t tid);

// From now on, this process does not itself parse the libc file of another process, but starts a child that parses the
// file. main() calls this function first of all. The function has no effect in a child that has a files::Reader.
void parse_only_in_children();

}  // namespace forksight::guard
