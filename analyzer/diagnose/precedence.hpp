// What one thread did before another, because it made or joined it, or made one that joined it, and so on. Nothing else
// that puts one thread after another is known.
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

  // Two threads of one process that are known well enough, none before the other.
  bool may_meet(const Point& one, const Point& other);
  // Very many threads: from here on may_meet() says no of all that would have to be looked up.
  bool has_given_up() const { return work_left_ == 0; }

 private:
  // For each thread that is after some point: from which of its moments on.
  using Since = std::unordered_map<model::LifeId, std::uint64_t>;

  bool is_before(const Point& one, const Point& other);
  const Since& follow(const Point& from);

  const model::Model& model_;
  std::vector<std::vector<model::LifeId>> children_;  // by creator, in the order of their births
  std::map<Point, Since> known_;
  std::size_t kept_ = 0;  // in all of known_
  std::size_t work_left_;
};

}  // namespace forksight::orders
