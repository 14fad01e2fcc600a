// What the shim may write into a lock of a forked child. All of it is fork-child-safe. Memory that is shared with the
// parent is not changed, because there the lock belongs to the parent.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

// For a lock that the forking thread holds, and that records `parent_tid` as its owner: makes `child_tid` the owner.
// For the program both ids mean the same thread. The recursion count, type and attributes stay. Waiters are removed
// from the lock, because the child does not have these threads. False: the lock is unchanged. Must run in the child's
// only thread.
bool give_to_child(void* lock, trace::LockKind kind, std::int32_t parent_tid, std::int32_t child_tid);

// Re-initialises, in place, a lock that is proven to be lost (orphan_proof.hpp). The type and attributes of the lock
// stay. The data that the lock protects stays as its holder left it. False: the lock is unchanged.
bool recover_lock(void* lock, trace::LockKind kind);

}  // namespace forksight
