#include "diagnose/lock_orders.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace forksight::orders {

namespace {

using model::LockOrder;
using model::OrderedLock;

constexpr std::size_t kLongest = 6;
constexpr std::size_t kMostSteps = 200'000;
constexpr std::size_t kMostAncestors = 64;

bool exclude(const OrderedLock& one, const OrderedLock& other) {
  return one.number == other.number && !(one.shared && other.shared);
}

// What of `order` is known to be over before that thread began, or to have begun when it had been joined.
bool is_apart(const model::Model& model, const LockOrder& order, model::LifeId other) {
  const model::ThreadLife& life = model.lives[other];
  if (life.joined != 0 && order.first >= life.joined) return true;
  const std::uint64_t own_end = model.lives[order.life].joined;
  if (own_end != 0 && own_end <= life.born) return true;
  model::LifeId descendant = other;
  for (std::size_t i = 0; i < kMostAncestors && model.lives[descendant].creator; ++i) {
    const model::LifeId creator = *model.lives[descendant].creator;
    if (creator == order.life) return order.last < model.lives[descendant].born;
    descendant = creator;
  }
  return false;
}

bool has_gate(const LockOrder& one, const LockOrder& other) {
  const auto is_out = [&](const OrderedLock& lock) {
    return exclude(lock, other.held_as) ||
           std::ranges::any_of(other.gates, [&](const OrderedLock& gate) { return exclude(lock, gate); });
  };
  return is_out(one.held_as) || std::ranges::any_of(one.gates, is_out);
}

bool can_meet(const model::Model& model, const LockOrder& one, const LockOrder& other) {
  return one.life != other.life && !has_gate(one, other) && !is_apart(model, one, other.life) &&
         !is_apart(model, other, one.life);
}

class Search {
 public:
  explicit Search(const model::Model& model) : model_(model) {
    for (const LockOrder& order : model.lock_orders)
      by_held_[{process_of(order), order.held_as.number}].push_back(&order);
  }

  Rings run() {
    for (std::size_t length = 2; length <= kLongest; ++length) {
      for (const auto& [key, orders] : by_held_) {
        for (const LockOrder* order : orders) {
          path_ = {order};
          extend(length);
        }
      }
    }
    return {std::move(rings_), steps_ <= kMostSteps};
  }

 private:
  using Key = std::pair<model::ProcessId, std::uint64_t>;

  model::ProcessId process_of(const LockOrder& order) const { return model_.lives[order.life].process; }

  void extend(std::size_t length) {
    const LockOrder& last = *path_.back();
    const LockOrder& first = *path_.front();
    if (path_.size() == length) {
      if (exclude(last.taken_as, first.held_as)) keep();
      return;
    }
    const auto next = by_held_.find({process_of(last), last.taken_as.number});
    if (next == by_held_.end()) return;
    for (const LockOrder* order : next->second) {
      if (++steps_ > kMostSteps) return;
      // The first link holds the lowest: each ring once.
      if (order->held_as.number <= first.held_as.number || !exclude(last.taken_as, order->held_as)) continue;
      const bool fits =
          std::ranges::all_of(path_, [&](const LockOrder* other) { return can_meet(model_, *other, *order); });
      if (!fits) continue;
      path_.push_back(order);
      extend(length);
      path_.pop_back();
    }
  }

  void keep() {
    std::set<Key> locks;
    for (const LockOrder* order : path_) locks.insert({process_of(*order), order->held_as.number});
    const bool is_new =
        std::ranges::none_of(known_, [&](const std::set<Key>& other) { return std::ranges::includes(locks, other); });
    if (!is_new) return;
    known_.push_back(std::move(locks));
    rings_.push_back(path_);
  }

  const model::Model& model_;
  std::map<Key, std::vector<const LockOrder*>> by_held_;
  Ring path_;
  std::vector<std::set<Key>> known_;
  std::vector<Ring> rings_;
  std::size_t steps_ = 0;
};

}  // namespace

Rings find_rings(const model::Model& model) { return Search(model).run(); }

}  // namespace forksight::orders
