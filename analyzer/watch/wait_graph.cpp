#include "watch/wait_graph.hpp"

#include <algorithm>
#include <limits>

namespace forksight::watch {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// A node that waits for an awake node is awake, too. So this function follows the edges backwards from the awake nodes.
std::vector<bool> find_awake(const std::vector<Node>& nodes) {
  std::vector<std::vector<std::size_t>> waiters(nodes.size());
  std::vector<bool> awake(nodes.size(), false);
  std::vector<std::size_t> open;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    bool is_awake = nodes[node].awake;
    for (const Edge& edge : nodes[node].edges) {
      if (edge.target < nodes.size()) {
        waiters[edge.target].push_back(node);
      } else {
        is_awake = true;
      }
    }
    if (is_awake) {
      awake[node] = true;
      open.push_back(node);
    }
  }
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    for (const std::size_t waiter : waiters[node]) {
      if (awake[waiter]) continue;
      awake[waiter] = true;
      open.push_back(waiter);
    }
  }
  return awake;
}

// Tarjan's strongly connected components over the stuck nodes. The algorithm does not use recursion, because a hostile
// process tree may be so deep that recursion would overflow the stack.
class Components {
 public:
  Components(const std::vector<Node>& nodes, const std::vector<bool>& awake)
      : nodes_(nodes),
        awake_(awake),
        index_(nodes.size(), kNone),
        low_(nodes.size(), 0),
        component_(nodes.size(), kNone) {
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (!awake[node] && index_[node] == kNone) visit(node);
    }
  }
  const std::vector<std::size_t>& of() const { return component_; }
  std::size_t count() const { return count_; }

 private:
  struct Visit {
    std::size_t node;
    std::size_t edge;
  };

  void enter(std::size_t node, std::vector<Visit>& path) {
    index_[node] = low_[node] = next_index_++;
    pending_.push_back(node);
    path.push_back({node, 0});
  }

  void visit(std::size_t start) {
    std::vector<Visit> path;
    enter(start, path);
    while (!path.empty()) {
      const std::size_t node = path.back().node;
      if (path.back().edge < nodes_[node].edges.size()) {
        const Edge& edge = nodes_[node].edges[path.back().edge++];
        const std::size_t target = edge.target;
        if (awake_[target] || !edge.is_waited_for) continue;
        if (index_[target] == kNone) {
          enter(target, path);
        } else if (component_[target] == kNone) {
          low_[node] = std::min(low_[node], index_[target]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low_[path.back().node] = std::min(low_[path.back().node], low_[node]);
      if (low_[node] == index_[node]) close(node);
    }
  }

  void close(std::size_t node) {
    for (;;) {
      const std::size_t member = pending_.back();
      pending_.pop_back();
      component_[member] = count_;
      if (member == node) break;
    }
    ++count_;
  }

  const std::vector<Node>& nodes_;
  const std::vector<bool>& awake_;
  std::vector<std::size_t> index_;
  std::vector<std::size_t> low_;
  std::vector<std::size_t> component_;
  std::vector<std::size_t> pending_;
  std::size_t next_index_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

std::vector<Judgement> judge(const std::vector<Node>& nodes) {
  const std::vector<bool> awake = find_awake(nodes);
  const Components components(nodes, awake);

  std::vector<Judgement> judgements(nodes.size());
  std::vector<bool> waits_for_another(components.count(), false);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (awake[node]) continue;
    for (const Edge& edge : nodes[node].edges) {
      const bool leaves = components.of()[edge.target] != components.of()[node];
      if (leaves && edge.is_waited_for) waits_for_another[components.of()[node]] = true;
    }
  }
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (awake[node]) continue;
    const bool is_victim = waits_for_another[components.of()[node]];
    judgements[node].state = is_victim ? StuckState::kVictim : StuckState::kRoot;
    const Edge* chosen = nullptr;
    for (const Edge& edge : nodes[node].edges) {
      if (!edge.is_waited_for) continue;
      const bool leaves = components.of()[edge.target] != components.of()[node];
      if (chosen == nullptr && edge.target != node) chosen = &edge;
      if (!leaves) continue;
      chosen = &edge;
      break;
    }
    if (chosen == nullptr) continue;
    judgements[node].waits_for = chosen->target;
    judgements[node].via = chosen->via;
  }
  return judgements;
}

}  // namespace forksight::watch
