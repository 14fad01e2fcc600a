// When --on-orphan may act: recover writes into the lock, abort ends the child. Both are for a lock that nobody of this
// process will ever release, and each needs a proof of that, kind by kind. Without it the touch is reported and the
// operation goes on as it would have.
//
//   mutex       Its memory names as owner the thread that held it at the fork, no thread of the child has that id, and
//               recursion and type are as they were at the fork: it was not initialised anew.
//   rwlock,     The same of its writer.
//    written
//   rwlock,     It counts exactly as many readers as threads are known to be lost with it, and no thread of the child
//    read       has it.
//   spinlock,   It is taken, no thread of the child has it or is in the middle of taking it, and what the child's
//   threads
//    guard      hold is completely known.
//   semaphore   As a spinlock; it began with one, was never posted by a thread that had not taken it, and no other
//               thread exists in the child that could post it.
//   annotated   What its annotations say.
//
// Never for memory that other processes see, nor for barriers and condition variables (lost_waiters.hpp).
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

// Of a lock's memory, what no waiter changes.
struct LockState {
  std::uint32_t words[3];

  bool operator==(const LockState&) const = default;
};
// `memory`: the lock's, or a copy of it.
LockState state_of(trace::LockKind kind, const void* memory);

struct LostLock {
  std::uint64_t tagged;
  std::int32_t holder_tid;
  std::uint32_t lost_readers;  // threads that are lost with it, reading
  LockState state;             // at the fork
};

// In the child. Some holder is not in any array, so that locks that name nobody are never proven.
void note_unknown_holders();

// Reads /proc/self/maps, once all else holds. By a thread that is about to wait for the lock.
bool is_proven_lost(const LostLock& lost);

}  // namespace forksight
