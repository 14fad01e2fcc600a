// The proof that a process is stuck, from two rounds of samples. Pure.
//
// The claim. A thread in futex(FUTEX_WAIT) on private memory, with no timeout, can be woken only by a thread of its own
// address space. If every thread of a process waits like this at ONE instant, then no thread of the process will ever
// run again. The process is dead, whatever lock or language it uses. A thread that waits for a child or for the other
// end of a pipe can be woken by other processes. prove() only names these processes. judge() of wait_graph.hpp decides
// whether one of them may still run.
//
// One instant. forksight looks at the threads one after another, and stops none of them. So a single round proves
// nothing. For example, forksight looks at thread A while A is blocked. Then thread B wakes A and blocks. Then
// forksight looks at B. Both threads seem to be blocked, although A runs. Therefore there are two rounds. Take a thread
// whose call, arguments, stack pointer, program counter and both context switch counts are the same in both rounds.
// This thread has not run between its two samples: after a run the kernel would have switched the thread out again and
// increased a count. So the thread was blocked from its first sample to its second sample. The first round ends before
// the second round begins. Hence ALL threads were blocked at the instant between the rounds.
//
// New threads. The task list is read before the first round, between the rounds, and in the second round. Assume that
// thread A made thread N before the first sample of A. If N still lives between the rounds, the list that is read
// between the rounds has N. If N has ended, it has woken no thread: a woken thread would have run, and the second round
// would show this.
//
// What else could end such a wait, and what the proof requires:
//  - time: the timeout pointer must be NULL.
//  - another address space: the wait must have the PRIVATE flag, or its word must be in a private writable mapping. In
//    both cases the kernel looks the futex up by address space. For a word in a shared mapping, all processes that have
//    the word mapped count as wakers. But if the memory names the owner of a mutex, only this owner counts.
//  - a separate process that shares the memory (CLONE_VM): this process counts as a waker. If the kernel refuses to
//    compare the memories, it is not known whether there is such a process. The report says so.
//  - a signal handler: find_handlers() in ways_out.hpp decides which handlers count. If a handler counts, the process
//    counts as stuck except for this way out, and the verdict says so. If a signal is pending that the thread does not
//    block, the signal will arrive soon. Then there is no verdict.
//  - io_uring: its completions run in the task that submitted them, and can wake futexes. A process that uses io_uring
//    is never proven to be stuck.
//  - priority inheritance: before Linux 6.x the owner in the word may be a task of another process, whose exit wakes
//    the waiter. So the proof requires that the owner is a thread of the process itself.
//  - a thread that is stopped, traced, frozen or held by seccomp: /proc shows the call that the thread was in, as if
//    the thread waited there. So the state must be S. If the kernel shows the function that the thread sleeps in, that
//    function must belong to the futex code. (This is not checked for a lock with priority inheritance, because its
//    waiters sleep in the code of rt_mutex.)
#pragma once

#include <string>
#include <vector>

#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// Signals 32 and 33, which glibc keeps for itself; bit 0 is signal 1.
constexpr std::uint64_t kReservedSignals = 1ULL << 31U | 1ULL << 32U;

struct Proof {
  bool stuck = false;          // only `wakers`, and a signal handler if `handler_could`, can wake the threads
  bool handler_could = false;  // a signal handler could end a wait
  std::uint64_t handlers = 0;  // signals with handlers that are a way out (see ways_out.hpp); bit 0 is signal 1
  // Signals that arrive without a sender, and for which a handler of `handlers` runs, or which end the process.
  std::uint64_t timed = 0;
  std::vector<Waker> wakers;  // threads and processes that could wake a thread of this process
  std::string why_not;        // if not stuck: the first condition that failed
  bool lasting = false;       // if not stuck: no proof can succeed until a thread has run
};

// True if the thread is in the same call in both samples and has not run between them. Also true if the thread has
// ended in both samples.
bool is_unchanged(const proc::ThreadSample& before, const proc::ThreadSample& after);
// True if both rounds have the same threads, and each thread is unchanged.
bool is_same_round(const proc::Round& before, const proc::Round& after);

Proof prove(const ProcessEvidence& evidence);

}  // namespace forksight::watch
