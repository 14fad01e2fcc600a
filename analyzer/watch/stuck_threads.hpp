// Finds threads that will never run again, although other threads of their process may still run. Some of the stuck
// threads wait for each other in a ring of locks and joins. Some wait for a mutex whose owner has ended and that no
// other thread may unlock. All other stuck threads wait for one of these threads.
//
// The proof is the one for a whole process (proof.hpp), applied to some of its threads. Only the owner of a mutex can
// end a wait for the mutex. In a ring, each thread waits for the next one, and the last one waits for the first.
// forksight takes a first sample of each thread, then reads the locks, and then takes a second sample of each thread.
// If no thread of the ring has run between its two samples, all threads of the ring slept while the locks were read.
// Nothing that other threads do can end these waits. A signal handler cannot end these waits either: the wait for a
// mutex or a join continues after the handler.
//
// A thread that waits for Python's GIL runs every few milliseconds, checks the GIL, and waits again. The waiting thread
// never gives up. Only the thread that has the GIL can release the GIL. If the thread that has the GIL is part of the
// ring and has not run between its two samples, it had the GIL for all that time. So a thread that was seen to wait for
// the GIL in that time still waits at the end. The waiting thread has not released a lock of the ring since then
// either. A release would have woken the thread that sleeps until it gets this lock. But no thread of the ring has run.
//
// On a busy machine, a thread that waits for the GIL needs much time to get a processor for its check. It is then
// rarely seen in its sleep. For the proof, it need not be seen there at every search: what earlier searches saw of it
// stays true as long as the other threads of the ring have not run. GilObservations keeps what earlier searches saw.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

struct StuckThreads {
  std::vector<proc::ThreadSample> threads;
  std::vector<WaitFacts> facts;  // parallel to `threads`
  bool are_all = false;          // the process has no other living thread
  bool empty() const { return threads.empty(); }
  bool has_gil() const;  // true if one of the threads waits for a GIL
};

// What successive searches of one process saw of its threads that wait for a GIL.
struct GilObservations {
  struct Observation {
    WaitFacts facts;
    std::uint64_t voluntary = 0;  // the thread's voluntary context switches, read after the facts
    bool is_confirmed = false;    // the thread has checked the GIL since `voluntary` was read, and waits again
    proc::ThreadSample latest;    // the latest sample in which the thread waited for the GIL
  };
  std::vector<proc::ThreadSample> before;  // samples of all threads, taken before all observations
  std::map<std::int32_t, Observation> by_tid;
  // The latest search decided nothing, because it did not see one of the needed threads asleep. The next search may.
  bool is_open = false;
};

// How long a search may wait until it has seen the threads that it needs.
struct Patience {
  std::chrono::milliseconds at_first{50};   // until each of them was seen in a wait for a GIL
  std::chrono::milliseconds when_seen{50};  // until each of them has checked the GIL, too
};

// Judges by the samples and facts which threads are stuck. All samples count as samples of one instant. The result is
// parallel to `threads`. Pure.
std::vector<bool> find_rings(std::int32_t pid, const std::vector<proc::ThreadSample>& threads,
                             const std::vector<WaitFacts>& facts);

// True if all threads of `stuck` still are stuck. A thread that waits for a GIL need not be seen in this wait, because
// the thread leaves the wait for an instant every few milliseconds. While the other threads of `stuck` do not run, the
// GIL is not released. So the thread still waits.
bool are_still_stuck(std::int32_t pid, const StuckThreads& stuck);

// Finds the stuck threads. It does not stop the process, and changes nothing in it. If no thread waits for a lock or a
// join, this costs two small reads for each thread. `seen` must be empty, or be what the previous search of the same
// process left there.
StuckThreads find_stuck_threads(std::int32_t pid, GilObservations& seen, const Patience& patience);

}  // namespace forksight::watch
