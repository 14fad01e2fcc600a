// Threads that will never go on although their process does: rings of locks and joins, mutexes whose owner has ended
// and that no other thread may unlock, and threads that queue behind these.
//
// The proof is that of a whole process (proof.hpp), for some of its threads. Only its owner can end the wait for a
//  mutex. Assume that the waits of the owners lead back to the first thread, and that none of these threads has run
//  between its first and its second sample. Then all of them slept at the instant in between, when their locks were
//  read, and nothing that other threads do ends that. A signal handler does not end it either: such a wait goes on
//  after it.
//
// A thread that waits for Python's GIL runs every few milliseconds, checks the GIL, and waits again. It never gives up,
// and only the thread that has the GIL gives it back. If that thread is part of the ring and has not run between its two
// samples, it had the GIL for all that time. So a thread that was seen to wait for the GIL in between still waited at
// the end, and has released nothing since: else one of the sleeping threads would have been woken.
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

// Pure. Which threads of a process, at one instant, are in such a ring or behind one. Parallel to `threads`.
std::vector<bool> find_rings(std::int32_t pid, const std::vector<proc::ThreadSample>& threads,
                             const std::vector<WaitFacts>& facts);

// True if threads that were found stuck, of which some wait for a GIL, still are. A thread that waits for a GIL need not be
// seen in that wait, because it leaves it for an instant every few milliseconds. As long as the others have not run, no
// thread has given the GIL back.
bool are_still_stuck(std::int32_t pid, const StuckThreads& stuck);

// Reads only. Costs two small reads for each thread of a process without such waits.
StuckThreads find_stuck_threads(std::int32_t pid);

}  // namespace forksight::watch
