// What may be written into a lock of a forked child. All of it is fork-child-safe, and nothing here touches memory that
// the parent shares: there the lock is the parent's.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

// A lock that the forking thread holds, and that knows it as `parent_tid`, is told that its owner is `child_tid`: the
// same thread, as far as the program can tell. Recursion, type and attributes stay; whoever waited for the lock at the
// fork is not here and is forgotten. False: left as it was. Must run in the child's only thread.
bool give_to_child(void* lock, trace::LockKind kind, std::int32_t parent_tid, std::int32_t child_tid);

// Re-initialises a lock that is proven lost (orphan_proof.hpp) in place, keeping its type and attributes. What it
// protected stays as its holder left it. False: left as it was.
bool recover_lock(void* lock, trace::LockKind kind);

}  // namespace forksight
