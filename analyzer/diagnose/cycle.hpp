// A ring of threads that wait for each other: wait_cycles.hpp finds these rings.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace forksight::cycles {

struct Link {
  model::ProcessId process = 0;
  const model::Wait* wait = nullptr;
  const model::Waker* waker = nullptr;  // one of the wakers of `wait`: the one that leads to the next link
};
using Cycle = std::vector<Link>;

struct Cycles {
  std::vector<Cycle> found;
  bool is_complete = true;  // false: the search has ended early, because it took too many steps
};

}  // namespace forksight::cycles
