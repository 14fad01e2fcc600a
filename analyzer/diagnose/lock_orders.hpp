// Rings of locks that threads have taken in opposite orders, although the threads did not block each other.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace forksight::orders {

// A link of a ring: a thread that holds a lock and takes the lock that the next link holds. The last link takes the
// lock that the first link holds. A queued link is a writer that waits for the readers of a rwlock. The link before a
// queued link is a reader that waits for this writer.
struct Link {
  const model::LockOrder* order = nullptr;
  bool is_queued = false;
};
using Ring = std::vector<Link>;

// The rings of waits that could have come about in the run. These things are true of each ring:
// - Each link is a different thread.
// - No two links hold a common lock (a gate) by which one keeps the other out.
// - It is not known of any two links that one came before the other (precedence.hpp).
// - The next link holds the lock in a way that makes this link wait. A reader does not wait for a reader, unless a
//   writer is queued between them.
// For each set of locks, only the shortest ring is listed. A ring is left out if its locks contain all locks of another
// ring. Rings of more than six links are left out. Shorter rings come first. The first link of a ring holds the lock
// with the lowest number; queued links do not count here. Rings of equal length are in the order of their processes,
// and then of these numbers.
struct Rings {
  std::vector<Ring> found;
  // False if there were too many orders to search completely. The search finds the shortest rings first.
  bool is_complete = true;
};
Rings find_rings(const model::Model& model);

}  // namespace forksight::orders
