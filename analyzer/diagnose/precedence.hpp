// Which acts of one thread came before those of another, because one thread made or joined the other, directly or
// through further threads. No other order between threads is known.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/model.hpp"

namespace forksight::orders {

// A thread at one of its moments.
struct Point {
  model::LifeId life = 0;
  std::uint64_t moment = 0;

  friend auto operator<=>(const Point&, const Point&) = default;
};

class Precedence {
 public:
  explicit Precedence(const model::Model& model);

  // Two threads of one process about which enough is known, and neither point comes before the other.
  bool may_meet(const Point& one, const Point& other);
  // There were too many threads to search: from now on may_meet() answers false.
  bool has_given_up() const { return work_left_ == 0; }

 private:
  // For one point: each thread with moments that come after it, and the first of these moments.
  using Since = std::unordered_map<model::LifeId, std::uint64_t>;

  bool is_before(const Point& one, const Point& other);
  const Since& follow(const Point& from);

  const model::Model& model_;
  std::vector<std::vector<model::LifeId>> children_;  // by creator, in the order of their births
  std::map<Point, Since> known_;
  std::size_t kept_ = 0;  // the number of entries in known_
  std::size_t work_left_;
};

}  // namespace forksight::orders
