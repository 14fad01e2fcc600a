// Threads that will never go on although their process does: rings of locks and joins, mutexes whose owner is gone and
// that nobody else may unlock, and who queues behind these.
//
// The proof is that of a whole process (proof.hpp), for some of its threads. A thread that waits for a mutex can be let
// on by its owner alone; if the owners' waits lead back to it, and none of these threads has run between the first look
// at it and the second, they all slept at the instant between, when their locks were read: nothing that the others do
// ends that. Neither does a signal handler: such a wait goes on after it.
//
// A thread that waits for Python's GIL runs again every few milliseconds, looks, and waits again: it never gives up, and
// only the thread that has the GIL gives it back. If that thread of the ring has not run between its two looks, it had the
// GIL for all that time. So whoever was seen to wait for the GIL in between still waited at the end, and has given
// nothing back since: else one of those that sleep would have been woken.
#pragma once

#include <cstdint>
#include <vector>

#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

struct StuckThreads {
  std::vector<proc::ThreadSample> threads;
  std::vector<WaitFacts> facts;  // parallel
  bool are_all = false;          // the process has no thread beside these
  bool empty() const { return threads.empty(); }
  bool has_gil() const;          // one of them waits for a GIL
};

// Pure. Which of all threads of a process, at one instant, are in such a ring or behind one. Parallel to `threads`.
std::vector<bool> find_rings(std::int32_t pid, const std::vector<proc::ThreadSample>& threads,
                             const std::vector<WaitFacts>& facts);

// Threads that were found to be stuck, some of them in a wait for a GIL, are so still. Those need not be seen in that wait,
// in which they do not stay: as long as the others have not run, nobody has given the GIL back.
bool are_still_stuck(std::int32_t pid, const StuckThreads& stuck);

// Reads only. A process whose threads wait for nothing of that kind costs two small reads a thread.
StuckThreads find_stuck_threads(std::int32_t pid);

}  // namespace forksight::watch
