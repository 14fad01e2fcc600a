// Finds out which thread waits for which other thread. Makes one wait-for graph (wait_graph.hpp) from the processes of
// a tree and the wakers of each thread. A waker that is a process stands for any of its threads. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "watch/evidence.hpp"
#include "watch/wait_graph.hpp"

namespace forksight::watch {

struct ThreadWaits {
  std::int32_t tid = 0;
  bool awake = false;         // the thread may run, or forksight does not understand its wait
  std::vector<Waker> wakers;  // if not awake: all threads and processes that could end its wait
};

struct ProcessWaits {
  std::int32_t pid = 0;
  std::vector<ThreadWaits> threads;  // the threads that have not ended; if none, the process counts as awake
};

struct ProcessJudgement {
  StuckState state = StuckState::kAwake;  // kAwake: a thread is awake; kRoot: none is awake, and one is a root
  std::vector<StuckState> threads;        // parallel to ProcessWaits::threads
  // the index of a process. For a victim: the next process on the way to a root. In a ring of roots: the next process
  // of the ring.
  std::optional<std::size_t> waits_for;
  std::string via;
};

// Returns one judgement for each process, in the same order. A thread counts as awake if one of its wakers is unknown:
// the waker's process is not among `processes`, or that process does not have the waker's thread.
std::vector<ProcessJudgement> judge_threads(const std::vector<ProcessWaits>& processes);

}  // namespace forksight::watch
