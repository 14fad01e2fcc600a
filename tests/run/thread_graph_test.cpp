#include "watch/thread_graph.hpp"

#include <gtest/gtest.h>

namespace forksight::watch {
namespace {

using Fates = std::vector<StuckState>;
using enum StuckState;

ThreadWaits runs(std::int32_t tid) { return {tid, true, {}}; }
ThreadWaits waits(std::int32_t tid, std::vector<Waker> wakers) { return {tid, false, std::move(wakers)}; }

TEST(ThreadGraph, TwoThreadsThatHoldEachOthersLocksAreStuckBesideOneThatRuns) {
  const auto judged =
      judge_threads({{100, {runs(100), waits(101, {{100, "mutex", 102}}), waits(102, {{100, "mutex", 101}})}}});
  EXPECT_EQ(judged[0].state, kAwake);
  EXPECT_EQ(judged[0].threads, (Fates{kAwake, kRoot, kRoot}));
}

TEST(ThreadGraph, AFutexOfUnknownUseIsAwakeAsLongAsAnyThreadIs) {
  EXPECT_EQ(judge_threads({{100, {runs(100), waits(101, {{100, "futex"}})}}})[0].threads, (Fates{kAwake, kAwake}));
  EXPECT_EQ(judge_threads({{100, {waits(100, {{100, "futex"}}), waits(101, {{100, "futex"}})}}})[0].threads,
            (Fates{kRoot, kRoot}));
}

TEST(ThreadGraph, AThreadThatWaitsForARingIsItsVictim) {
  const auto judged = judge_threads(
      {{100,
        {waits(100, {{100, "join", 101}}), waits(101, {{100, "mutex", 102}}), waits(102, {{100, "mutex", 101}})}}});
  EXPECT_EQ(judged[0].state, kRoot);
  EXPECT_EQ(judged[0].threads, (Fates{kVictim, kRoot, kRoot}));
}

// Two threads of process 100 wait for each other. Process 200 waits for process 100. A third thread of process 100
// waits for process 200.
TEST(ThreadGraph, AProcessThatIsWaitedForInTurnIsStillAVictim) {
  const auto judged = judge_threads(
      {{100, {waits(100, {{200, "wait4"}}), waits(101, {{100, "mutex", 102}}), waits(102, {{100, "mutex", 101}})}},
       {200, {waits(200, {{100, "pipe"}})}}});
  EXPECT_EQ(judged[0].state, kRoot);
  EXPECT_EQ(judged[1].state, kVictim);
  EXPECT_EQ(judged[1].waits_for, 0U);
  EXPECT_EQ(judged[1].via, "pipe");
}

TEST(ThreadGraph, ARingAcrossProcessesIsACause) {
  const auto judged =
      judge_threads({{100, {waits(100, {{200, "mutex", 200}})}}, {200, {waits(200, {{100, "flock"}})}}});
  EXPECT_EQ(judged[0].state, kRoot);
  EXPECT_EQ(judged[1].state, kRoot);
  EXPECT_EQ(judged[0].waits_for, 1U);
  EXPECT_EQ(judged[0].via, "mutex");
  EXPECT_EQ(judged[1].waits_for, 0U);
}

// Some processes could end a wait although nobody waits for them: they may receive a descriptor from the queue of a
// socket, or may shut a socket down. While such a process is awake, the hang is not proven. Such a process is never the
// cause of a hang.
TEST(ThreadGraph, AProcessThatCouldOnlyEndTheWaitIsNoCause) {
  for (const char* via : {model::kViaReceiving, model::kViaShutdown, model::kViaAdoption}) {
    const auto judged = judge_threads({{100, {waits(100, {{200, via}})}}, {200, {waits(200, {})}}});
    EXPECT_EQ(judged[0].state, kRoot) << via;
    EXPECT_FALSE(judged[0].waits_for) << via;
    EXPECT_EQ(judge_threads({{100, {waits(100, {{200, via}})}}, {200, {runs(200)}}})[0].state, kAwake) << via;
  }
}

TEST(ThreadGraph, AWaitWithoutWakersIsARootAndWithAnUnknownWakerIsAwake) {
  EXPECT_EQ(judge_threads({{100, {waits(100, {})}}})[0].state, kRoot);
  EXPECT_EQ(judge_threads({{100, {waits(100, {{300, "pipe"}})}}})[0].state, kAwake);
  EXPECT_EQ(judge_threads({{100, {waits(100, {{100, "mutex", 999}})}}})[0].state, kAwake);
  EXPECT_EQ(judge_threads({{100, {}}})[0].state, kAwake);
}

TEST(ThreadGraph, VictimsFollowTheShortestWay) {
  const auto judged = judge_threads({{100, {waits(100, {{200, "wait4"}, {300, "pipe"}})}},
                                     {200, {waits(200, {{300, "pipe"}})}},
                                     {300, {waits(300, {{300, "futex"}})}}});
  EXPECT_EQ(judged[0].waits_for, 2U);
  EXPECT_EQ(judged[0].via, "pipe");
  EXPECT_EQ(judged[1].waits_for, 2U);
  EXPECT_FALSE(judged[2].waits_for);
}

}  // namespace
}  // namespace forksight::watch
