#include "watch/wait_graph.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace forksight::watch {
namespace {

Node awake() { return {true, {}}; }
Node blocked(std::initializer_list<std::size_t> targets) {
  Node node;
  for (const std::size_t target : targets) node.edges.push_back({target, "pipe"});
  return node;
}

std::vector<StuckState> fates(const std::vector<Node>& nodes) {
  std::vector<StuckState> all;
  for (const Judgement& judgement : judge(nodes)) all.push_back(judgement.state);
  return all;
}

using Fates = std::vector<StuckState>;
using enum StuckState;

TEST(WaitGraph, AWaitWithoutWakersIsARoot) { EXPECT_EQ(fates({blocked({})}), Fates{kRoot}); }

TEST(WaitGraph, WaitingForOneselfIsARoot) { EXPECT_EQ(fates({blocked({0})}), Fates{kRoot}); }

TEST(WaitGraph, ANodeThatWaitsForAnAwakeNodeIsAwake) {
  EXPECT_EQ(fates({awake(), blocked({0}), blocked({1})}), (Fates{kAwake, kAwake, kAwake}));
}

TEST(WaitGraph, OneAwakeWakerIsEnough) {
  EXPECT_EQ(fates({awake(), blocked({}), blocked({0, 1})}), (Fates{kAwake, kRoot, kAwake}));
}

TEST(WaitGraph, VictimsOfVictimsPointTowardsTheCause) {
  const auto judgements = judge({blocked({}), blocked({0}), blocked({1})});
  EXPECT_EQ(judgements[0].state, kRoot);
  EXPECT_FALSE(judgements[0].waits_for);
  EXPECT_EQ(judgements[1].state, kVictim);
  EXPECT_EQ(judgements[1].waits_for, 0U);
  EXPECT_EQ(judgements[1].via, "pipe");
  EXPECT_EQ(judgements[2].state, kVictim);
  EXPECT_EQ(judgements[2].waits_for, 1U);
}

// Returns the node with an edge to each of `targets`. The targets could end the wait of the node, but the node does not
// wait for the targets.
Node may_be_ended_by(Node node, std::initializer_list<std::size_t> targets) {
  for (const std::size_t target : targets) node.edges.push_back({target, "SCM_RIGHTS", false});
  return node;
}

TEST(WaitGraph, ANodeThatAnAwakeNodeMayEndIsAwake) {
  EXPECT_EQ(fates({awake(), may_be_ended_by(blocked({}), {0})}), (Fates{kAwake, kAwake}));
}

TEST(WaitGraph, ANodeIsNoVictimOfANodeForWhichItDoesNotWait) {
  const auto judgements = judge({blocked({}), may_be_ended_by(blocked({}), {0}), may_be_ended_by(blocked({1}), {0})});
  EXPECT_EQ(judgements[1].state, kRoot);
  EXPECT_FALSE(judgements[1].waits_for);
  EXPECT_EQ(judgements[2].state, kVictim);
  EXPECT_EQ(judgements[2].waits_for, 1U);
}

TEST(WaitGraph, ANodeIsInNoRingWithANodeForWhichItDoesNotWait) {
  const auto judgements = judge({may_be_ended_by(blocked({}), {1}), blocked({0})});
  EXPECT_EQ(judgements[0].state, kRoot);
  EXPECT_FALSE(judgements[0].waits_for);
  EXPECT_EQ(judgements[1].state, kVictim);
}

TEST(WaitGraph, ARingIsACauseAndItsWaitersAreVictims) {
  const auto judgements = judge({blocked({1}), blocked({0}), blocked({0})});
  EXPECT_EQ(judgements[0].state, kRoot);
  EXPECT_EQ(judgements[0].waits_for, 1U);
  EXPECT_EQ(judgements[1].state, kRoot);
  EXPECT_EQ(judgements[2].state, kVictim);
}

TEST(WaitGraph, ARingThatAlsoWaitsForADeadOneIsItsVictim) {
  EXPECT_EQ(fates({blocked({1}), blocked({0, 2}), blocked({})}), (Fates{kVictim, kVictim, kRoot}));
}

TEST(WaitGraph, AnUnknownWakerMeansAwake) { EXPECT_EQ(fates({blocked({7})}), Fates{kAwake}); }

TEST(WaitGraph, ADeepChainNeedsNoDeepStack) {
  constexpr std::size_t kDepth = 200'000;
  std::vector<Node> nodes{blocked({})};
  for (std::size_t depth = 1; depth < kDepth; ++depth) nodes.push_back(blocked({depth - 1}));
  const auto judgements = judge(nodes);
  EXPECT_EQ(judgements.front().state, kRoot);
  EXPECT_EQ(judgements.back().state, kVictim);
}

// Computes the states directly from their definitions, with a matrix that says which node reaches which.
Fates judge_naively(const std::vector<Node>& nodes) {
  const std::size_t count = nodes.size();
  std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count, false));
  std::vector<bool> is_awake(count, false);
  for (std::size_t node = 0; node < count; ++node) {
    is_awake[node] = nodes[node].awake;
    for (const Edge& edge : nodes[node].edges) reaches[node][edge.target] = true;
  }
  for (std::size_t middle = 0; middle < count; ++middle) {
    for (std::size_t from = 0; from < count; ++from) {
      for (std::size_t to = 0; to < count; ++to) {
        if (reaches[from][middle] && reaches[middle][to]) reaches[from][to] = true;
      }
    }
  }
  Fates all(count, kRoot);
  for (std::size_t node = 0; node < count; ++node) {
    for (std::size_t other = 0; other < count; ++other) {
      if (reaches[node][other] && !reaches[other][node]) all[node] = kVictim;
    }
    bool wakes = is_awake[node];
    for (std::size_t other = 0; other < count; ++other) wakes = wakes || (reaches[node][other] && is_awake[other]);
    if (wakes) all[node] = kAwake;
  }
  return all;
}

TEST(WaitGraph, AgreesWithTheNaiveModelOnRandomGraphs) {
  std::mt19937 random(4711);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t count = 1 + random() % 9;
    std::vector<Node> nodes(count);
    for (Node& node : nodes) {
      node.awake = random() % 8 == 0;
      for (std::size_t edges = random() % 3; edges > 0; --edges) node.edges.push_back({random() % count, "wait4"});
    }
    ASSERT_EQ(fates(nodes), judge_naively(nodes)) << "round " << round;
  }
}

}  // namespace
}  // namespace forksight::watch
