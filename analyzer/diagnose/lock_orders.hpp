// Rings of locks that threads have taken in opposite orders without meeting.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace forksight::orders {

// A thread that holds a lock and takes the one that the next link holds; the last takes what the first holds. Or it is
// queued: a writer, who waits for the readers of a rwlock, and whom the reader before it waits for.
struct Link {
  const model::LockOrder* order = nullptr;
  bool is_queued = false;
};
using Ring = std::vector<Link>;

// The rings that could close: each link by another thread; no two of them under a lock that keeps one out while the
// other is in; none over before another one, for certain (precedence.hpp); and each waits for a hold that excludes it
// (not a reader for a reader, unless a writer is queued between them). One for each set of locks, the shortest; none
// whose locks contain those of another one. In the order of the locks' numbers; the first link holds the lowest. Rings
// of more than six links are left out.
struct Rings {
  std::vector<Ring> found;
  bool is_complete = true;  // false: of very many orders, the search was given up; the shortest rings come first
};
Rings find_rings(const model::Model& model);

}  // namespace forksight::orders
