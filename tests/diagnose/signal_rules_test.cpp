// Tests the rule about signals that stay pending in a child, because the fork did not copy the thread that takes them.
#include <gtest/gtest.h>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::LockTrace;
using test::read_model;

constexpr std::uint64_t kTerm = 1U << 14U;
constexpr std::uint64_t kInt = 1U << 1U;

model::Model awake_child(std::uint64_t unheard = kTerm) {
  LockTrace scene({.holder_waits = trace::WaitKind::kSignals});
  model::Model model = read_model(scene.trace);
  model.forks[0].lost_waits[0].object = kTerm | kInt;
  model.processes[1].liveness = model::Liveness::kAwake;
  model.processes[1].unheard_signals = unheard;
  model.processes[1].unheard_for_ms = 2100;
  return model;
}

model::Model dead_waiter() {
  model::Model model = awake_child();
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1400;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  return model;
}

TEST(SignalThreadLost, TheSetOfSignalsIsReadFromTheTrace) {
  LockTrace scene({.holder_waits = trace::WaitKind::kSignals});
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.forks[0].lost_waits.size(), 1U);
  EXPECT_EQ(model.forks[0].lost_waits[0].kind, model::AwaitedKind::kSignals);
  EXPECT_EQ(model.forks[0].lost_waits[0].object, test::kLockAddress);
}

TEST(SignalThreadLost, IsLikelyIfTheChildIsAwake) {
  const auto findings = diagnose(awake_child());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "signal-thread-lost");
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
  EXPECT_EQ(findings[0].culprit.name, "the thread that takes SIGINT, SIGTERM");
  EXPECT_NE(findings[0].summary.find("does not take SIGTERM: thread 1001"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].chain[0].find("2.1 s"), std::string::npos) << findings[0].chain[0];
}

TEST(SignalThreadLost, IsCertainIfTheChildIsProvenToHang) {
  const auto findings = diagnose(dead_waiter());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "signal-thread-lost");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
}

TEST(SignalThreadLost, IsNotTheCauseIfAnotherLostThreadMayEndTheSleep) {
  model::Model model = dead_waiter();
  model.forks[0].unknown_threads = 1;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lost-wakeup");
}

TEST(SignalThreadLost, IsSilentUnlessALostThreadWaitedForTheUnheardSignal) {
  EXPECT_TRUE(diagnose(awake_child(0)).empty());
  EXPECT_TRUE(diagnose(awake_child(1U)).empty());  // SIGHUP, for which the lost thread did not wait
  model::Model waits_for_lock = awake_child();
  waits_for_lock.forks[0].lost_waits[0].kind = model::AwaitedKind::kSemaphore;
  EXPECT_TRUE(diagnose(waits_for_lock).empty());
  model::Model execed = awake_child();
  execed.processes[1].has_execed = true;
  EXPECT_TRUE(diagnose(execed).empty());
}

TEST(SignalThreadLost, IsNotTheCauseIfAnOrphanedLockIs) {
  LockTrace scene({});
  scene.touch(trace::TouchKind::kLock);
  model::Model model = read_model(scene.trace);
  model.forks[0].lost_waits = {{model.forks[0].lost_threads[0], model::AwaitedKind::kSignals, kTerm, {}}};
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  model.processes[1].unheard_signals = kTerm;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
}

}  // namespace
}  // namespace forksight
