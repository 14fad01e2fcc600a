// Rings of locks that threads have taken in opposite orders without blocking each other.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace forksight::orders {

// A thread that holds a lock and takes the lock that the next link holds. The last link takes what the first one holds.
// A queued link is a writer that waits for the readers of a rwlock, and for which the reader before it waits.
struct Link {
  const model::LockOrder* order = nullptr;
  bool is_queued = false;
};
using Ring = std::vector<Link>;

// The rings that could close. Each link is a different thread. No two links hold a common lock that keeps one of them
// out while the other is in. No link is known to be over before another one begins (precedence.hpp). Each link waits
// for a hold that excludes it: a reader does not wait for a reader, unless a writer is queued between them. For each
// set of locks, only the shortest ring is listed. A ring is left out if its locks contain all locks of another ring.
// The rings are in the order of their locks' numbers, and the first link of each holds the lowest. Rings of more than
// six links are left out.
struct Rings {
  std::vector<Ring> found;
  // false: there were too many orders, and the search was given up; the shortest rings are found first
  bool is_complete = true;
};
Rings find_rings(const model::Model& model);

}  // namespace forksight::orders
