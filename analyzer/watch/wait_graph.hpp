// Finds out which process waits for which, in one tree, at one instant. Pure: plain data in, plain data out.
//  A process is awake if some thread of it could go on by itself, or could be woken by a process that is awake. Every
//  other process is stuck for ever, because no process that could wake it will ever run. A stuck process is a victim if
//  it waits, directly or through other processes, for a process that does not wait for this victim. All other stuck
//  processes are roots, which are the causes: a process that no process could wake, or a ring of processes that wait
//  for each other.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace forksight::watch {

// An edge begins at the node of a process or thread, and means: `target` may wake this thread, or a thread of this
// process.
struct Edge {
  std::size_t target = 0;
  std::string via;  // "wait4", "pipe"

  // False: `target` could end the wait, but the process does not wait for `target` (model::is_waited_for). Such an edge
  // can make its process awake, but it cannot make a victim or a ring.
  bool is_waited_for = true;
};

struct Node {
  // a thread of the process runs, or a timeout, a signal, or a process outside of the tree can wake it
  bool awake = false;
  std::vector<Edge> edges;
};

enum class StuckState { kAwake, kRoot, kVictim };

struct Judgement {
  StuckState state = StuckState::kAwake;
  // the next process on the way to the cause; in a ring of roots, the next process of the ring
  std::optional<std::size_t> waits_for;
  std::string via;
};

// Returns one judgement for each node, in the same order. A node with an edge to a node that does not exist counts as
// awake, because nothing is known about that node. The time is linear in nodes and edges.
std::vector<Judgement> judge(const std::vector<Node>& nodes);

}  // namespace forksight::watch
