// The proof that a process is stuck, from two rounds of samples. Pure.
//
// The claim. A thread in futex(FUTEX_WAIT) on private memory, with no timeout, can be woken only by a thread of its own
// address space. If at ONE instant every thread of a process waits so, no thread of it will ever run again: it is
// dead, whatever lock or language it uses. Threads that wait for a child or for the other end of a pipe only pass
// the question on to other processes: prove() names those, wait_graph.hpp answers.
//
// One instant. The threads are looked at one after another, and nothing is stopped, so a single round proves nothing:
// A may be looked at, B wakes A, B blocks, B is looked at. Therefore two rounds. A thread whose call, arguments,
// stack pointer, program counter and both context switch counts are the same in both rounds has not left the
// processor or come back to it in between: had it run, it would have had to be switched out again to be blocked
// again, and that counts. So it was blocked from its first look to its second. The first round ends before the second
// begins, hence at the instant between them ALL threads were blocked. The task list is read before, between and after:
// a thread that one of them made before it was looked at would still be in the middle one, or have ended without
// waking anybody (the second round shows that it had not).
//
// What else could end such a wait, and what the proof requires:
//  - time: the timeout pointer must be NULL.
//  - another address space: the PRIVATE flag, or a word in a private writable mapping, where the kernel looks the
//    futex up by address space too. Of a word in a shared mapping all who have it mapped count as wakers, unless its
//    memory tells who alone could: the owner of a mutex.
//  - a process of other threads that shares the memory (CLONE_VM) counts as a waker. Where the kernel refuses to
//  compare
//    memories the question stays open, and the report says so.
//  - a signal handler: any caught signal but 32 and 33, which glibc keeps for itself and sends to threads only from
//    within the process, leaves this one way out: the verdict says so. A signal that is pending and not blocked is
//    on its way: no verdict.
//  - io_uring: its completions run in the task that submitted them, and it can wake futexes.
//  - priority inheritance: before Linux 6.x the owner in the word may be a task of another process, whose exit wakes
//    the waiter. The owner must be one of our own threads.
//  - a stopped, traced, frozen or seccomp-trapped thread shows the same call number: the state must be S, and where
//    the kernel tells what it sleeps in, that must be the futex code.
#pragma once

#include <string>
#include <vector>

#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// Signals 32 and 33.
constexpr std::uint64_t kReservedSignals = 1ULL << 31U | 1ULL << 32U;

struct Proof {
  bool stuck = false;          // only `wakers` can wake any of its threads
  bool handler_could = false;  // ... or a signal handler
  std::uint64_t handlers = 0;  // ... of these signals, each of which is a way out; bit 0 is signal 1
  std::uint64_t timed = 0;     // those of `handlers` that arrive without a sender
  std::vector<Waker> wakers;   // processes that could wake a thread of this one
  std::string why_not;         // !stuck: the first condition that failed
  bool lasting = false;        // !stuck, and this does not change until a thread moves
};

// The thread is blocked in the same call as before and has not run in between.
bool is_unchanged(const proc::ThreadSample& before, const proc::ThreadSample& after);
// The same threads, and each of them unchanged.
bool is_same_round(const proc::Round& before, const proc::Round& after);

Proof prove(const ProcessEvidence& evidence);

}  // namespace forksight::watch
