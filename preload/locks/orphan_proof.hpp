// When --on-orphan may act: recover writes into the lock, abort ends the child. Both require that no thread of this
// process will ever release the lock, and each kind of lock needs its own proof of that. Without a proof the touch is
// recorded, and the operation goes on as it would have.
//
//   mutex       Its memory names the thread that held it at the fork as its owner, no thread of the child has that id,
//   and
//               recursion and type are as they were at the fork: it was not initialised anew.
//   rwlock,     The same for its writer.
//    written
//   rwlock,     It counts exactly as many readers as threads are known to be lost with it, and no thread of the child
//    read       holds it.
//   spinlock,   It is taken, no thread of the child holds it or is about to take it, and it is completely known what
//   the
//    guard      child's threads hold.
//   semaphore   As a spinlock; its initial value was one, no thread posted it without having taken it, and the child
//               has no other thread that could post it.
//   annotated   What its annotations say.
//   The shim never acts on memory that other processes share, nor on barriers and condition variables
//   (lost_waiters.hpp).
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

// The part of a lock's memory that waiters do not change.
struct LockState {
  std::uint32_t words[3];

  bool operator==(const LockState&) const = default;
};
// `memory`: the memory of the lock, or a copy of it.
LockState state_of(trace::LockKind kind, const void* memory);

struct LostLock {
  std::uint64_t tagged;
  std::int32_t holder_tid;
  std::uint32_t lost_readers;  // number of reading threads that are lost with it
  LockState state;             // at the fork
};

// Called in the child. Some holder is in no array, so locks that do not name their owner are never proven to be lost.
void note_unknown_holders();

// Reads /proc/self/maps if all other conditions hold. For a thread that is about to wait for the lock.
bool is_proven_lost(const LostLock& lost);

}  // namespace forksight
