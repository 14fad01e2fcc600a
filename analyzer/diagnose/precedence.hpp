// Tells whether an act of one thread came before an act of another thread. Only creations and joins of threads show
// this, directly or through further threads.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/model.hpp"

namespace forksight::orders {

// A thread at one moment of its process's clock (model/foresight.hpp).
struct Point {
  model::LifeId life = 0;
  std::uint64_t moment = 0;

  friend auto operator<=>(const Point&, const Point&) = default;
};

class Precedence {
 public:
  explicit Precedence(const model::Model& model);

  // True if three conditions are met: the points are of two threads of one process, enough is known about both threads,
  // and neither point comes before the other.
  bool may_meet(const Point& one, const Point& other);
  // True if the search was given up because there were too many threads. From then on may_meet() returns false.
  bool has_given_up() const { return work_left_ == 0; }

 private:
  // Describes what comes after one point. Maps each thread that has moments after the point to the first of these
  // moments.
  using Since = std::unordered_map<model::LifeId, std::uint64_t>;

  bool is_before(const Point& one, const Point& other);
  const Since& follow(const Point& from);

  const model::Model& model_;
  std::vector<std::vector<model::LifeId>> children_;  // indexed by creator; threads are in the order of their births
  std::map<Point, Since> known_;
  std::size_t kept_ = 0;  // the number of entries in known_ and in its maps
  std::size_t work_left_;
};

}  // namespace forksight::orders
