// Finds rings of locks: threads took the same locks in opposite orders, but did not block each other in the run.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace forksight::orders {

// A link of a ring is a thread that holds a lock and takes the lock of the next link. The last link takes the lock of
// the first link. A queued link is a writer that waits for the readers of a rwlock. The link before a queued link is a
// reader that waits for this writer.
struct Link {
  const model::LockOrder* order = nullptr;
  bool is_queued = false;
};
using Ring = std::vector<Link>;

// The rings of waits that could have come about in the run. These statements are true of each ring:
// - Each link is a different thread.
// - No two links hold a common lock (a gate) that keeps them apart.
// - No link is known to have come before another link (precedence.hpp).
// - The next link holds its lock in a way that makes this link wait. A reader does not wait for a reader, unless a
//   writer is queued between them.
// For each set of locks, only the shortest ring is listed. A ring is left out if its locks contain all locks of another
// ring, or if it has more than six links. Shorter rings come first. The first link of a ring holds the lock with the
// lowest number among the locks of links that are not queued. Rings of equal length are in the order of their
// processes. Rings of one process are in the order of the number of their first lock.
struct Rings {
  std::vector<Ring> found;
  // False if there were too many orders to search all of them. The search finds the shortest rings first.
  bool is_complete = true;
};
Rings find_rings(const model::Model& model);

}  // namespace forksight::orders
