// Who waits for whom, thread by thread: the processes of a tree with the wakers of each thread become one wait-for
// graph (wait_graph.hpp). A waker that is a process stands for any of its threads. Pure.
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
  bool awake = false;         // or not understood
  std::vector<Waker> wakers;  // !awake: all that could end its wait
};

struct ProcessWaits {
  std::int32_t pid = 0;
  std::vector<ThreadWaits> threads;  // that have not ended. None: the process counts as awake
};

struct ProcessJudgement {
  Fate fate = Fate::kAwake;              // kAwake: at least one thread is. kRoot: at least one thread is a root
  std::vector<Fate> threads;             // parallel to ProcessWaits::threads
  std::optional<std::size_t> waits_for;  // another process: of a victim the next on the way to a root
  std::string via;
};

// A waker that is none of `processes` makes its waiter awake, and so does a tid that its process does not have.
std::vector<ProcessJudgement> judge_threads(const std::vector<ProcessWaits>& processes);

}  // namespace forksight::watch
