// Says when --on-orphan may act. With `recover`, the shim writes into the lock. With `abort`, the shim ends the child.
// Both require a proof that no thread of this process will ever release the lock. Each kind of lock needs its own
// proof. Without a proof, the touch is recorded, and the operation continues as it would without the option.
//
//   mutex: according to its memory, the owner is still the thread that held it at the fork, and no thread of the child
//     has that id. The recursion count and type are as they were at the fork, so the mutex was not initialised again.
//   rwlock, held by a writer: the same proof, with the writer as the owner.
//   rwlock, held by readers: the lock counts exactly as many readers as there are lost threads that are known to hold
//     it, and no thread of the child holds it.
//   spinlock, guard of a static: the lock is taken, no thread of the child holds it or is about to take it, and the
//     shim knows all locks that threads of the child hold.
//   semaphore: as a spinlock. In addition, its initial value was one, no thread posted it without having taken it, and
//     in the child no other thread and no signal handler could post it (posts.hpp).
//   annotated lock: according to its annotations, a lost thread holds it.
//   For the other kinds, signal handlers do not count: POSIX lets only the holder release such a lock. A handler that
//     jumps out of the wait does not release it either.
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
  std::uint32_t lost_readers;  // number of lost threads that hold the lock as readers
  LockState state;             // of the lock, at the fork
  std::uint64_t waiter_sp;     // Site::sp of the call that is about to wait
};

// Called in the child if the forking thread's array was full at some time: the thread may hold locks that are in no
// array. From then on, a lock that does not name its owner is never proven to be lost.
void note_unknown_holders();

// True if the lock is proven to be lost. For a thread that is about to wait for the lock. Reads /proc/thread-self/maps
// last, only if all other conditions hold.
bool is_proven_lost(const LostLock& lost);

}  // namespace forksight
