// Tells what a blocked thread waits for, as far as its system call alone shows it.
#pragma once

#include <cstdint>
#include <set>

#include "proc/thread_sample.hpp"

namespace forksight::proc {

enum class WaitClass {
  kAwakable,  // the thread runs, or time may wake it, or something that is not examined may wake it
  // a futex wait without a timeout, with the PRIVATE flag: only threads of its own address space can wake it
  kPrivateFutex,
  kPlainFutex,  // like kPrivateFutex, but without the flag; in a private mapping, the same threads can wake it
  kChild,       // wait4, waitid
  kRead,        // read(), recv() and similar calls on a descriptor
  kWrite,       // write(), send() and similar calls on a descriptor
  kPoll,        // poll, select, epoll_wait without a timeout
  kFileLock,    // flock(), fcntl(F_SETLKW)
  kVfork,       // the thread waits for a vfork child, which shares its memory
  kTraced,      // stopped until its tracer lets it go on
  kEnded,       // the thread has ended: it wakes nobody and waits for nothing
};

struct WaitTarget {
  WaitClass kind = WaitClass::kAwakable;
  std::uint64_t word = 0;         // futexes
  bool priority_inherit = false;  // FUTEX_LOCK_PI, FUTEX_LOCK_PI2
  std::int64_t child = 0;         // kChild: > 0: that pid; -1: any child, or a group of them
  std::int32_t pidfd = -1;        // kChild by waitid(P_PIDFD): the descriptor, see resolve_pidfd()
  std::int32_t fd = -1;           // kRead, kWrite, kFileLock
};

WaitTarget classify(const ThreadSample& thread);
// True for poll, select, epoll_wait and their variants, with or without a timeout.
bool is_poll(const Syscall& call);
// True if the call ends at a set time, whatever others do.
bool has_timeout(const Syscall& call);

// True if this thread alone shows that its process may go on. False if the thread cannot be read. Needs only one small
// read.
bool is_awake(std::int32_t pid, std::int32_t tid);

// Returns the children of the threads of `parent` that wait in vfork(). Such a thread waits until a child calls exec or
// ends. Until then, both share their memory.
std::set<std::int32_t> find_vfork_children(std::int32_t parent);

}  // namespace forksight::proc
