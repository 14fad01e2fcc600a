#include "diagnose/lock_orders.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "diagnose/precedence.hpp"

namespace forksight::orders {

namespace {

using model::LockOrder;
using model::OrderedLock;

constexpr std::size_t kLongest = 6;
constexpr std::size_t kMostSteps = 200'000;
constexpr std::size_t kMostVisits = 200'000'000;  // orders that the search looks at, including those that cannot follow

bool exclude(const OrderedLock& one, const OrderedLock& other) {
  return one.number == other.number && !(one.shared && other.shared);
}

bool holds_any(const LockOrder& order) { return order.held_as.number != 0; }

bool has_gate(const LockOrder& one, const LockOrder& other) {
  const auto is_out = [&](const OrderedLock& lock) {
    return (holds_any(other) && exclude(lock, other.held_as)) ||
           std::ranges::any_of(other.gates, [&](const OrderedLock& gate) { return exclude(lock, gate); });
  };
  return (holds_any(one) && is_out(one.held_as)) || std::ranges::any_of(one.gates, is_out);
}

// A link of a ring that the search is building.
struct Step {
  const LockOrder* order;
  Point point;
  // True: this link is a writer that waits for readers. The link before this link is a reader that waits behind the
  // writer.
  bool is_queued = false;
};

class Search {
 public:
  explicit Search(const model::Model& model) : model_(model), precedence_(model) {
    for (const LockOrder& order : model.lock_orders) {
      if (holds_any(order)) by_held_[{process_of(order), order.held_as.number}].push_back(&order);
      if (order.queues && !order.taken_as.shared)
        writers_[{process_of(order), order.taken_as.number}].push_back(&order);
    }
  }

  Rings run() {
    for (std::size_t length = 2; length <= kLongest; ++length) {
      for (const auto& [key, orders] : by_held_) {
        for (const LockOrder* order : orders) {
          for (const std::uint64_t moment : order->moments) {
            path_ = {{order, {order->life, moment}}};
            extend(length);
            if (is_exhausted()) return {std::move(rings_), false};
          }
        }
      }
    }
    return {std::move(rings_), !precedence_.has_given_up()};
  }

 private:
  using Key = std::pair<model::ProcessId, std::uint64_t>;
  using Orders = std::map<Key, std::vector<const LockOrder*>>;

  model::ProcessId process_of(const LockOrder& order) const { return model_.lives[order.life].process; }

  bool is_exhausted() const { return steps_ > kMostSteps || visits_ > kMostVisits; }

  void extend(std::size_t length) {
    const Step last = path_.back();  // a copy, because the path grows below
    const LockOrder& first = *path_.front().order;
    if (path_.size() == length) {
      if (exclude(last.order->taken_as, first.held_as)) keep();
      return;
    }
    const Key awaited{process_of(*last.order), last.order->taken_as.number};
    if (const auto next = by_held_.find(awaited); next != by_held_.end()) {
      for (const LockOrder* order : next->second) {
        ++visits_;
        if (is_exhausted()) return;
        // The first link holds the lock with the lowest number. So the search finds each ring only once.
        if (order->held_as.number <= first.held_as.number || !exclude(last.order->taken_as, order->held_as)) continue;
        append(length, order, false);
      }
    }
    // A reader waits for another reader only if a writer is queued between them.
    if (!last.order->queues || !last.order->taken_as.shared) return;
    const auto queue = writers_.find(awaited);
    if (queue == writers_.end()) return;
    for (const LockOrder* order : queue->second) {
      ++visits_;
      if (is_exhausted()) return;
      append(length, order, true);
    }
  }

  void append(std::size_t length, const LockOrder* order, bool is_queued) {
    for (const std::uint64_t moment : order->moments) {
      ++steps_;
      if (is_exhausted()) return;
      const Step step{order, {order->life, moment}, is_queued};
      if (!std::ranges::all_of(path_, [&](const Step& other) { return can_meet(other, step); })) continue;
      path_.push_back(step);
      extend(length);
      path_.pop_back();
    }
  }

  bool can_meet(const Step& one, const Step& other) {
    return one.order->life != other.order->life && !has_gate(*one.order, *other.order) &&
           precedence_.may_meet(one.point, other.point);
  }

  // True if all locks of a known ring are among `locks`, which are sorted. There may be a hundred thousand known rings,
  // but a ring has at most kLongest locks. So each subset of `locks` is looked up.
  bool contains_known_ring(const std::vector<Key>& locks) const {
    for (unsigned subset = 1; subset < 1U << locks.size(); ++subset) {
      std::vector<Key> some;
      for (std::size_t at = 0; at < locks.size(); ++at) {
        if ((subset >> at & 1U) != 0) some.push_back(locks[at]);
      }
      if (known_.contains(some)) return true;
    }
    return false;
  }

  void keep() {
    std::vector<Key> locks;
    for (const Step& step : path_) {
      if (!step.is_queued) locks.emplace_back(process_of(*step.order), step.order->held_as.number);
    }
    std::ranges::sort(locks);
    locks.erase(std::ranges::unique(locks).begin(), locks.end());
    if (contains_known_ring(locks)) return;
    known_.insert(std::move(locks));
    Ring ring;
    for (const Step& step : path_) ring.push_back({step.order, step.is_queued});
    rings_.push_back(std::move(ring));
  }

  const model::Model& model_;
  Precedence precedence_;
  Orders by_held_;
  Orders writers_;
  std::vector<Step> path_;
  std::set<std::vector<Key>> known_;  // the locks of each ring, sorted
  std::vector<Ring> rings_;
  std::size_t steps_ = 0;
  std::size_t visits_ = 0;
};

}  // namespace

Rings find_rings(const model::Model& model) { return Search(model).run(); }

}  // namespace forksight::orders
