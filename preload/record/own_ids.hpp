// Who the calling thread is, in the kernel's numbers and in libc's, after every kind of fork.
//
// libc keeps a thread's id in its control block and writes it into locks that know their owner. fork() and _Fork()
// renew it; a fork by the system call itself does not: there the child's thread goes by its parent's id in every lock.
// So a slot has both: `tid` is the kernel's, `lock_tid` what locks say.
#pragma once

#include <cstdint>

#include "record/slots.hpp"

namespace forksight {

// By the initialiser: looks whether libc keeps the id where it is known to.
void start_own_ids();
// The id that libc would write into a lock now. Where libc's place for it is not known, the kernel's.
std::int32_t lock_tid();

// The initial thread of this process, whose slot it is, has ended: the kernel then clears the id in its control block,
// which stays where it is. False where libc's place for it is not known.
bool has_initial_thread_ended(const Slot& slot);

// In the only thread of a forked process: this is its process and its id now. Null: the thread has no slot.
// async-signal-safe and fork-child-safe.
void renew_own_ids(Slot* self);

// Before ids are used, off the lock path: if this process is the child of a fork that no hook and no handler saw (a
// system call in line), its own ids are renewed, and the parent's threads are none of its own. One system call where
// nothing has changed. A process that shares its memory with another (vfork, clone with CLONE_VM) changes nothing.
void notice_unseen_fork();

}  // namespace forksight
