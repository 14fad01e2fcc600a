// Rings of locks that threads have taken in opposite orders without meeting.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace forksight::orders {

// Each link holds a lock and takes the one that the next link holds; the last takes what the first holds.
using Ring = std::vector<const model::LockOrder*>;

// The rings that could close: each link by another thread; no two of them under a lock that keeps one out while the
// other is in; none over before another's thread was made, or begun after it was joined, for certain; and each waits
// for a hold that excludes it (not a reader for a reader). One for each set of locks, the shortest; none whose locks
// contain those of another one. In the order of the locks' numbers; the first link holds the lowest. Rings of more than
// six links are left out.
struct Rings {
  std::vector<Ring> found;
  bool is_complete = true;  // false: of very many orders, the search was given up; the shortest rings come first
};
Rings find_rings(const model::Model& model);

}  // namespace forksight::orders
