// Tests findings from the examination of living processes: children that hang without a touch, and victims.
#include <gtest/gtest.h>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::LockTrace;
using test::read_model;

model::Model dead_child() {
  LockTrace scene({});
  model::Model model = read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1400;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  return model;
}

model::Model waiting_child(std::uint32_t flags = 0, bool has_returned = false) {
  LockTrace scene({});
  const auto wait = scene.wait(flags);
  if (has_returned) scene.end(wait, 4);
  model::Model model = read_model(scene.trace);
  model.touches[0].stack =
      test::make_stack({"syscall libc.so.6", "std::__atomic_futex_unsigned_base::_M_futex_wait_until libstdc++.so.6",
                        "std::future<int>::get future:10", "consume app.cpp:31", "main app.cpp:40"});
  return model;
}

TEST(LostWakeup, IsCertainIfTheHangIsProven) {
  const auto findings = diagnose(dead_child());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lost-wakeup");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  EXPECT_EQ(findings[0].culprit.kind, CulpritKind::kThread);
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
  EXPECT_EQ(findings[0].thread_name, "app");
  std::string all;
  for (const std::string& sentence : findings[0].chain) all += sentence;
  EXPECT_NE(all.find("is not known"), std::string::npos);
  EXPECT_NE(all.find("1.4 s"), std::string::npos);
}

TEST(LostWakeup, IsSilentWithoutTheProofOrWithoutLostThreads) {
  model::Model awake = dead_child();
  awake.processes[1].liveness = model::Liveness::kAwake;
  EXPECT_TRUE(diagnose(awake).empty());
  model::Model alone = dead_child();
  alone.forks[0].lost_threads.clear();
  EXPECT_TRUE(diagnose(alone).empty());
  EXPECT_EQ(find_unexplained(alone, {}).size(), 1U);
  model::Model in_pipe = dead_child();
  in_pipe.processes[1].waits[0].kind = model::WaitKind::kPipeRead;
  EXPECT_TRUE(diagnose(in_pipe).empty());
}

TEST(LostWakeup, IsSilentIfTheChildExeced) {
  model::Model model = dead_child();
  model.processes[1].has_execed = true;
  EXPECT_TRUE(diagnose(model).empty());
  EXPECT_EQ(find_unexplained(model, {}).size(), 1U);
  model::Model waiting = waiting_child();
  waiting.processes[1].has_execed = true;
  EXPECT_TRUE(diagnose(waiting).empty());
}

TEST(LostWakeup, IsSilentIfATouchExplainsTheHang) {
  LockTrace scene({});
  scene.touch(trace::TouchKind::kLock);
  model::Model model = read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
}

TEST(LostWakeup, IsOnlyLikelyIfASignalHandlerCouldEndTheWait) {
  model::Model model = dead_child();
  model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_NE(findings[0].chain[0].find("only a signal handler could"), std::string::npos) << findings[0].chain[0];
}

TEST(LostWakeup, IsSilentInACoreIfAHandlerMayChangeTheFutexWord) {
  model::Model model = waiting_child();
  model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  model.processes[1].is_core = true;
  EXPECT_EQ(diagnose(model).at(0).harm, Certainty::kLikely);  // no signal handler sets the future of this wait
  model.touches[0].stack.frames.clear();
  EXPECT_TRUE(diagnose(model).empty());  // the program may have a signal handler that changes the futex word
  model.processes[1].sets_no_handlers = true;
  EXPECT_EQ(diagnose(model).at(0).harm, Certainty::kPossible);
}

TEST(LostWakeup, NamesTheFuture) {
  model::Model model = waiting_child();
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1400;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lost-wakeup");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].stack.frames.size(), 5U);
  EXPECT_NE(findings[0].summary.find("hangs in std::future::get() (app.cpp:31)"), std::string::npos)
      << findings[0].summary;
  std::string all;
  for (const std::string& sentence : findings[0].chain) all += sentence;
  EXPECT_NE(all.find("promise"), std::string::npos) << all;
  EXPECT_EQ(all.find("is not known"), std::string::npos) << all;
}

TEST(LostWakeup, IsLikelyIfOnlyTheShimSawTheWait) {
  const auto findings = diagnose(waiting_child());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
}

TEST(LostWakeup, IsSilentAboutWaitsThatMayEnd) {
  EXPECT_TRUE(diagnose(waiting_child(trace::kTouchHandlers)).empty());
  EXPECT_TRUE(diagnose(waiting_child(0, true)).empty());
  // The child was seen from outside, but the run ended before the hang was proven.
  model::Model awake = waiting_child();
  awake.processes[1].liveness = model::Liveness::kAwake;
  EXPECT_TRUE(diagnose(awake).empty());
  model::Model ended = waiting_child();
  ended.processes[1].exit_status = 9;
  EXPECT_TRUE(diagnose(ended).empty());
}

TEST(LostWakeup, AFutexWaitDoesNotHideTheLockItIsPartOf) {
  LockTrace scene({.kind = trace::LockKind::kGuard, .memory = test::guard_memory(0x100)});
  scene.touch(trace::TouchKind::kLock);
  scene.wait();
  model::Model model = read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "interrupted-static-init");
}

TEST(LostWakeup, AGrandchildBlamesTheForkThatLeftThreadsBehind) {
  LockTrace scene({});
  test::TraceBuilder& trace = scene.trace;
  trace.as(test::kChild);
  trace::ForkRecord fixed{};
  fixed.ordinal = 2;
  fixed.forking_thread = trace.thread(test::kChild, "app");
  const auto second = trace.fork(fixed, {}, {});
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{second, 3000, 0, 5});
  scene.child = 3000;
  scene.wait();
  const auto findings = diagnose(read_model(trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].tid, 3000);
  EXPECT_EQ(findings[0].fork->pid, test::kParent);
}

TEST(Victims, AreListedUnderTheirCauseAcrossGenerations) {
  model::Model model = dead_child();
  model.processes[0].liveness = model::Liveness::kVictim;
  model.processes[0].waits_for = 1;
  model.processes[0].waits_via = "wait4";
  model::Process launcher;
  launcher.pid = 900;
  launcher.liveness = model::Liveness::kVictim;
  launcher.waits_for = 0;
  launcher.waits_via = "pipe";
  model.processes.push_back(launcher);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  ASSERT_EQ(findings[0].victims.size(), 2U);
  EXPECT_EQ(findings[0].victims[0].pid, test::kParent);
  EXPECT_EQ(findings[0].victims[0].via, "wait4");
  EXPECT_EQ(findings[0].victims[1].pid, 900);
}

TEST(Victims, AreNotListedUnderACuredHang) {
  LockTrace scene({});
  scene.end(scene.touch(trace::TouchKind::kLock, 0, trace::TouchAction::kRecovered), 0);
  model::Model model = read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[0].liveness = model::Liveness::kVictim;
  model.processes[0].waits_for = 1;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kCured);
  EXPECT_TRUE(findings[0].victims.empty());
}

TEST(Victims, ThatWaitForEachOtherGiveNoFinding) {
  model::Model model = dead_child();
  for (model::ProcessId id : {0U, 1U}) {
    model.processes[id].liveness = model::Liveness::kVictim;
    model.processes[id].waits_for = 1 - id;
  }
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(Unexplained, NamesAHangThatNoRuleExplains) {
  model::Model model = dead_child();
  model.processes[0].liveness = model::Liveness::kDead;
  model.processes[0].exe = "/opt/app/app";
  const auto findings = diagnose(model);
  EXPECT_EQ(findings.size(), 1U);
  const std::vector<std::string> sentences = find_unexplained(model, findings);
  ASSERT_EQ(sentences.size(), 1U);
  EXPECT_NE(sentences[0].find("process 1000 (app) has been stuck"), std::string::npos) << sentences[0];
}

}  // namespace
}  // namespace forksight
