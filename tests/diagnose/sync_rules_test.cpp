// Tests the rules about condition variables and barriers at which lost threads waited, and about ended holders.
#include <gtest/gtest.h>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::LockScene;
using test::LockTrace;
using test::read_model;
using trace::SyncOperation;
using trace::TouchAction;

LockScene condition() { return {.kind = trace::LockKind::kCondition, .memory = test::condition_memory(3)}; }
LockScene barrier() { return {.kind = trace::LockKind::kBarrier, .memory = test::barrier_memory(2, 0)}; }

void mark_dead(model::Model& model) {
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1400;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
}

model::Model destroyed(const LockScene& scene, trace::TouchKind kind, TouchAction action = TouchAction::kNone) {
  LockTrace about(scene);
  about.touch(kind, 0, action, SyncOperation::kDestroy);
  return read_model(about.trace);
}

model::Model stolen() {
  LockTrace scene(condition());
  scene.end(scene.touch(trace::TouchKind::kCondition, trace::kTouchStolen, TouchAction::kNone, SyncOperation::kSignal),
            0);
  return read_model(scene.trace);
}

std::string all_of(const Finding& finding) {
  std::string all = finding.summary;
  for (const std::string& sentence : finding.chain) all += "\n" + sentence;
  return all;
}

TEST(OrphanedCondvar, IsCertainIfTheChildHangsWhileItDestroysTheObject) {
  model::Model model = destroyed(condition(), trace::TouchKind::kCondition);
  mark_dead(model);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-condvar");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  EXPECT_TRUE(findings[0].culprit.is_waited_for);
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
  EXPECT_NE(findings[0].summary.find("hangs destroying"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].summary.find("\"worker\" and 2 more"), std::string::npos) << findings[0].summary;
}

TEST(OrphanedCondvar, IsSilentIfTheCallReturnsOrWithoutATouch) {
  LockTrace scene(condition());
  EXPECT_TRUE(diagnose(read_model(scene.trace)).empty());
  scene.end(scene.touch(trace::TouchKind::kCondition, 0, TouchAction::kNone, SyncOperation::kBroadcast), 0);
  EXPECT_TRUE(diagnose(read_model(scene.trace)).empty());
}

TEST(OrphanedCondvar, ALostSignalIsReportedOnlyIfTheChildHangsAtTheCondition) {
  model::Model model = stolen();
  EXPECT_TRUE(diagnose(model).empty());
  mark_dead(model);
  auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-condvar");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_NE(findings[0].summary.find("its wake-up was lost"), std::string::npos) << findings[0].summary;
  model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  model.processes[1].waits[0].object = test::kLockAddress + 48;
  findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lost-wakeup");
}

TEST(OrphanedCondvar, SaysThatAHangWasPrevented) {
  LockTrace scene(condition());
  scene.end(scene.touch(trace::TouchKind::kCondition, 0, TouchAction::kRecovered, SyncOperation::kDestroy), 0);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kCured);
  EXPECT_NE(findings[0].summary.find("would have hung destroying"), std::string::npos) << findings[0].summary;
  EXPECT_NE(all_of(findings[0]).find("sound"), std::string::npos);
}

TEST(OrphanedCondvar, IgnoresATouchThatNamesALockOfAnotherKind) {
  model::Model model = destroyed({}, trace::TouchKind::kCondition);
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(OrphanedBarrier, IsCertainIfTheChildHangsWhileItDestroysTheObject) {
  model::Model model = destroyed(barrier(), trace::TouchKind::kBarrier);
  mark_dead(model);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-barrier");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
}

TEST(OrphanedBarrier, AWaitIsCertainOnlyIfTheHangIsProven) {
  LockTrace scene(barrier());
  const auto touch = scene.touch(trace::TouchKind::kBarrier, 0, TouchAction::kNone, SyncOperation::kWait);
  model::Model model = read_model(scene.trace);
  auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  mark_dead(model);
  findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  scene.end(touch, 0);
  findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kCorruption);
  EXPECT_NE(findings[0].summary.find("too early"), std::string::npos) << findings[0].summary;
}

TEST(OrphanedMutex, OfAThreadThatEndedDoesNotBlameTheFork) {
  LockTrace scene({.holder_flags = trace::kThreadEnded});
  scene.touch(trace::TouchKind::kLock);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("ended without releasing it"), std::string::npos) << findings[0].summary;
  const std::string all = all_of(findings[0]);
  EXPECT_NE(all.find("the fork is not the cause"), std::string::npos) << all;
  EXPECT_EQ(all.find("left behind"), std::string::npos) << all;
}

TEST(OrphanedMutex, OfAThreadThatEndedHangsTheParentToo) {
  LockTrace scene({.holder_flags = trace::kThreadEnded});
  model::Model model = read_model(scene.trace);
  model.processes[0].waits = {test::futex_wait(test::kParent)};
  EXPECT_TRUE(diagnose(model).empty());
  model.processes[0].liveness = model::Liveness::kDead;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(model.processes[findings[0].process].pid, test::kParent);
  model.processes[0].waits[0].object += 4;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(LostWakeup, NamesWhatTheLostThreadsWaitedFor) {
  LockTrace scene({.holder_waits = trace::WaitKind::kSemaphore});
  model::Model model = read_model(scene.trace);
  mark_dead(model);
  model.forks[0].lost_waits[0].name = "items";
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(all_of(findings[0]).find("which waited for semaphore items"), std::string::npos) << all_of(findings[0]);
}

}  // namespace
}  // namespace forksight
