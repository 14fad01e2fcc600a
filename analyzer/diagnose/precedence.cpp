#include "diagnose/precedence.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace forksight::orders {

namespace {

constexpr std::size_t kMostKept = 2'000'000;
constexpr std::size_t kMostWork = 5'000'000;  // the number of threads that all searches together may look up

}  // namespace

Precedence::Precedence(const model::Model& model)
    : model_(model), children_(model.lives.size()), work_left_(kMostWork) {
  for (model::LifeId id = 0; id < model.lives.size(); ++id) {
    const auto& creator = model.lives[id].creator;
    if (creator && *creator != id) children_[*creator].push_back(id);
  }
  for (auto& children : children_) {
    std::ranges::sort(children, {}, [&](model::LifeId id) { return model.lives[id].born; });
  }
}

bool Precedence::may_meet(const Point& one, const Point& other) {
  const model::ThreadLife& life = model_.lives[one.life];
  const model::ThreadLife& other_life = model_.lives[other.life];
  if (one.life == other.life || life.process != other_life.process) return false;
  if (!life.is_followed || !other_life.is_followed) return false;
  // The clock advances whenever a thread is created or joined. So if one point comes before the other, the earlier
  // point has the lower moment.
  const bool is_before_other = one.moment < other.moment ? is_before(one, other) : is_before(other, one);
  return !is_before_other && !has_given_up();
}

bool Precedence::is_before(const Point& one, const Point& other) {
  const Since& after = follow(one);
  const auto since = after.find(other.life);
  return since != after.end() && other.moment >= since->second;
}

// Finds everything that comes after the point. The search takes the lowest moment first. So it reaches each thread at
// the earliest moment of that thread that comes after the point.
const Precedence::Since& Precedence::follow(const Point& from) {
  if (kept_ > kMostKept) {
    known_.clear();
    kept_ = 0;
  }
  const auto [at, is_new] = known_.try_emplace(from);
  Since& after = at->second;
  if (!is_new) return after;
  using Reached = std::pair<std::uint64_t, model::LifeId>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> next;
  next.emplace(from.moment, from.life);
  while (!next.empty()) {
    const auto [since, id] = next.top();
    next.pop();
    if (!after.try_emplace(id, since).second) continue;
    if (work_left_ == 0) break;
    --work_left_;
    const model::ThreadLife& life = model_.lives[id];
    const auto born = [&](model::LifeId child) { return model_.lives[child].born; };
    const auto& children = children_[id];
    for (auto child = std::ranges::upper_bound(children, since, {}, born); child != children.end(); ++child) {
      if (!after.contains(*child)) next.emplace(born(*child), *child);
    }
    if (life.joiner && !after.contains(*life.joiner)) next.emplace(life.joined, *life.joiner);
  }
  after.erase(from.life);
  kept_ += after.size() + 1;
  return after;
}

}  // namespace forksight::orders
