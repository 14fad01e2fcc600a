// Threads that will never run again. Other threads of their process may still run. Some of the stuck threads wait for
// each other in a ring of locks and joins. Some wait for a mutex whose owner has ended and that no other thread may
// unlock. The others wait for such a thread.
//
// The proof is the one for a whole process (proof.hpp), applied to some of its threads. Only the owner of a mutex can
// end a wait for the mutex. In a ring, each thread waits for the next one, and the last one waits for the first.
// forksight takes a first sample of each thread, then reads the locks, and then takes a second sample of each thread.
// If no thread of the ring has run between its two samples, all of them slept while the locks were read. Nothing that
// other threads do can end these waits. A signal handler cannot end them either: the wait for a mutex or a join
// continues after the handler.
//
// A thread that waits for Python's GIL runs every few milliseconds, checks the GIL, and waits again. The thread never
// gives up, and only the thread that has the GIL can release it. If the thread that has the GIL is part of the ring and
// has not run between its two samples, it had the GIL for all that time. So a thread that was seen to wait for the GIL
// in that time still waits at the end. The waiting thread has released no lock of the ring in that time: a release
// would have woken the thread of the ring that sleeps until it gets this lock, but no such thread has run.
#pragma once

#include <cstdint>
#include <vector>

#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

struct StuckThreads {
  std::vector<proc::ThreadSample> threads;
  std::vector<WaitFacts> facts;  // parallel to `threads`
  bool are_all = false;          // the process has no other living thread
  bool empty() const { return threads.empty(); }
  bool has_gil() const;          // true if one of the threads waits for a GIL
};

// Judges by the samples and facts which threads are stuck. All samples count as samples of one instant. The result is
// parallel to `threads`. Pure.
std::vector<bool> find_rings(std::int32_t pid, const std::vector<proc::ThreadSample>& threads,
                             const std::vector<WaitFacts>& facts);

// True if all threads of `stuck` still are stuck. A thread that waits for a GIL need not be seen in this wait, because
// the thread leaves the wait for an instant every few milliseconds. As long as the other threads of `stuck` have not
// run, the GIL was not released, so that thread still waits.
bool are_still_stuck(std::int32_t pid, const StuckThreads& stuck);

// Finds the stuck threads. It does not stop the process, and changes nothing in it. If no thread waits for a lock or a
// join, this costs two small reads for each thread.
StuckThreads find_stuck_threads(std::int32_t pid);

}  // namespace forksight::watch
