// The ids of the calling thread, in the kernel and in libc, after every kind of fork.
//   libc keeps a thread's id in the control block of the thread, and writes the id into locks that record their owner.
//   fork() and _Fork() renew this id in the child. A fork by the bare system call does not renew it. After such a fork,
//   the child's thread still writes the id of the parent's thread into locks. So a slot has two ids: `tid` is the
//   kernel's, `lock_tid` is the one in locks.
#pragma once

#include <cstdint>

#include "record/slots.hpp"

namespace forksight {

// Called by the initialiser: checks whether libc keeps the id at the known place.
void start_own_ids();
// The id that libc would write into a lock now; the kernel's id if libc's place for it is not known.
std::int32_t lock_tid();

// True if `slot` belongs to the initial thread of this process, and this thread has ended. When it ends, its control
// block stays in memory, and the kernel clears the id in the block. False if libc's place for the id is not known.
bool has_initial_thread_ended(const Slot& slot);

// Called in the only thread of a forked process: notes the new process id, and the new ids of the thread in its slot.
// `self` is null if the thread has no slot. async-signal-safe and fork-child-safe.
void renew_own_ids(Slot* self);

// Functions outside of the fast path call this before they use ids. This process may be the child of a fork that no
// hook and no handler saw (a `syscall` instruction of the program). Then this function renews the ids and begins a new
// epoch. The slots of the parent's threads belong to the old epoch, so they do not count as slots of this process.
// Costs one system call if nothing has changed. Does nothing in a process that shares its memory with its parent
// (vfork, clone with CLONE_VM).
void notice_unseen_fork();

}  // namespace forksight
