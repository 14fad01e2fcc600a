// What the shim may write into a lock of a forked child. All of it is fork-child-safe. Nothing here writes to memory
// that the parent shares, because there the lock belongs to the parent.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

// The forking thread holds a lock that knows it as `parent_tid`: makes `child_tid` the owner. For the program that is
// the same thread. Recursion, type and attributes stay; threads that waited for the lock at the fork do not exist here
// and are forgotten. False: the lock is unchanged. Must run in the child's only thread.
bool give_to_child(void* lock, trace::LockKind kind, std::int32_t parent_tid, std::int32_t child_tid);

// Re-initialises a lock that is proven to be lost (orphan_proof.hpp) in place, and keeps its type and attributes. The
// data that it protects stays as its holder left it. False: the lock is unchanged.
bool recover_lock(void* lock, trace::LockKind kind);

}  // namespace forksight
