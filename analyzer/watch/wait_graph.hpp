// Who waits for whom, over the processes of one tree, at one instant. Pure data in, pure data out.
//
// A process is awake if some thread of it could go on by itself, or could be woken by a process that is awake.
// Everything else is stuck for ever: nobody who could wake it will ever run. Among the stuck, a process that waits
// (over any number of steps) for something that does not wait for it in turn is a victim; the others are the roots,
// the causes: a process that nobody could wake at all, or a ring of processes that wait for each other.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace forksight::watch {

// "A thread of this process may be woken by `target`."
struct Edge {
  std::size_t target = 0;
  std::string via;  // "wait4", "pipe"

  // False: `target` could end the wait, but nobody waits for it (model::is_waited_for). Such an edge keeps a node awake,
  // and makes no victim and no ring.
  bool is_waited_for = true;
};

struct Node {
  bool awake = false;       // some thread runs, or can be woken by time, a signal source, or somebody outside of the tree
  std::vector<Edge> edges;
};

enum class Fate { kAwake, kRoot, kVictim };

struct Judgement {
  Fate fate = Fate::kAwake;
  std::optional<std::size_t> waits_for;  // the next on the way to the cause, and in a ring of roots the next of the ring
  std::string via;
};

// One judgement a node, in the same order. An edge to a node that does not exist makes its process awake: unknown
// evidence proves nothing. Linear in nodes and edges.
std::vector<Judgement> judge(const std::vector<Node>& nodes);

}  // namespace forksight::watch
