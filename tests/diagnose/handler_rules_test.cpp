// Tests the rules about atfork handlers that do not return. The findings combine the trace with the state of the
// process as seen from outside.
#include <gtest/gtest.h>

#include "diagnose/diagnose.hpp"
#include "support/handler_scene.hpp"

namespace forksight {
namespace {

using test::HandlerTrace;
using test::read_model;

constexpr std::size_t kParentId = 0;
constexpr std::size_t kChildId = 1;

model::Model stuck_in_prepare(model::Liveness liveness) {
  HandlerTrace scene;
  scene.run(trace::HandlerPhase::kPrepare, 0);
  model::Model model = read_model(scene.trace);
  model.processes[kParentId].liveness = liveness;
  model.processes[kParentId].stuck_for_ms = 1500;
  model.handlers[0].functions[0] = "end_pool";
  return model;
}

TEST(AtforkHandlerStuck, NamesTheHandlerAndItsPlace) {
  model::Model model = stuck_in_prepare(model::Liveness::kDead);
  model.handler_runs[0].fork_stack = test::make_stack({"main app.c:20"});
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-handler-stuck");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  EXPECT_EQ(findings[0].culprit.kind, CulpritKind::kHandler);
  // libpool.so registered its handlers first. Prepare handlers run in reverse order. So the handler of libpool.so runs
  // last.
  EXPECT_EQ(findings[0].culprit.name, "prepare handler end_pool (2nd of 2)");
  EXPECT_EQ(findings[0].culprit.library, "/usr/lib/libpool.so");
  EXPECT_EQ(
      findings[0].summary,
      "process 1000 hangs in fork() at app.c:20: prepare handler end_pool of libpool.so (2nd of 2) does not return");
  EXPECT_TRUE(find_unexplained(model, findings).empty());
}

TEST(AtforkHandlerStuck, IsOnlyLikelyWithoutTheProof) {
  const auto stalled = diagnose(stuck_in_prepare(model::Liveness::kStalled));
  ASSERT_EQ(stalled.size(), 1U);
  EXPECT_EQ(stalled[0].harm, Certainty::kLikely);
  const auto by_signal = diagnose(stuck_in_prepare(model::Liveness::kDeadButForSignal));
  ASSERT_EQ(by_signal.size(), 1U);
  EXPECT_EQ(by_signal[0].harm, Certainty::kLikely);
  EXPECT_EQ(by_signal[0].outcome, Outcome::kMayHang);
}

TEST(AtforkHandlerStuck, IsNotReportedIfASignalMayWakeTheThreadThatItWaitsFor) {
  HandlerTrace scene;
  const std::uint64_t run = scene.run(trace::HandlerPhase::kPrepare, 0);
  scene.wait(run, trace::HandlerWaitKind::kJoin, scene.worker);
  model::Model model = read_model(scene.trace);
  model.processes[kParentId].liveness = model::Liveness::kDeadButForSignal;
  EXPECT_EQ(diagnose(model).at(0).harm, Certainty::kLikely);
  model.processes[kParentId].ways_out = {"a handler of SIGUSR1"};
  EXPECT_TRUE(diagnose(model).empty());
  model::Wait of_worker;
  of_worker.tid = model.threads[*model.handler_runs[0].waits[0].owner].tid;
  of_worker.kind = model::WaitKind::kFutex;
  model.processes[kParentId].waits = {of_worker};
  EXPECT_TRUE(diagnose(model).empty());
  model.processes[kParentId].waits[0].use = model::FutexUse::kMutex;  // no signal handler unlocks a mutex
  EXPECT_EQ(diagnose(model).at(0).harm, Certainty::kLikely);
}

TEST(AtforkHandlerStuck, IsSilentOfAHandlerThatMayStillBeWorking) {
  EXPECT_TRUE(diagnose(stuck_in_prepare(model::Liveness::kAwake)).empty());
  EXPECT_TRUE(diagnose(stuck_in_prepare(model::Liveness::kUnknown)).empty());
  HandlerTrace scene;
  scene.run(trace::HandlerPhase::kPrepare, std::nullopt);
  model::Model model = read_model(scene.trace);
  EXPECT_TRUE(model.handler_runs.empty());
}

TEST(AtforkHandlerStuck, SaysWhatTheHandlerWaitsForAndWhichThreadHoldsIt) {
  HandlerTrace scene;
  const std::uint64_t run = scene.run(trace::HandlerPhase::kPrepare, 0);
  scene.wait(run, trace::HandlerWaitKind::kJoin, scene.worker);
  model::Model model = read_model(scene.trace);
  model.processes[kParentId].liveness = model::Liveness::kDead;
  model.threads[1].owner = model::Owner::kOpenblas;
  auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("joins thread 1001 \"worker\" (a worker of OpenBLAS)"), std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
  EXPECT_TRUE(findings[0].culprit.holder->alive);
  EXPECT_EQ(findings[0].culprit.holder->owner, "openblas");

  HandlerTrace own;
  own.wait(own.run(trace::HandlerPhase::kPrepare, 0), trace::HandlerWaitKind::kLock, own.forking);
  model = read_model(own.trace);
  model.processes[kParentId].liveness = model::Liveness::kDead;
  findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("which the forking thread itself holds"), std::string::npos)
      << findings[0].summary;
}

TEST(AtforkHandlerStuck, IgnoresAWaitThatReturned) {
  HandlerTrace scene;
  scene.wait(scene.run(trace::HandlerPhase::kPrepare, 0), trace::HandlerWaitKind::kLock, scene.worker, 1);
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.handler_runs.size(), 1U);
  EXPECT_TRUE(model.handler_runs[0].waits.empty());
}

constexpr std::uint64_t kEarlierLock = 0x5550'0000'9000;

model::Wait lock_wait(std::int32_t tid, std::uint64_t lock, std::int32_t owner) {
  model::Wait wait = test::futex_wait(tid);
  wait.object = lock;
  wait.use = model::FutexUse::kMutex;
  wait.owner = owner;
  wait.wakers = {{test::kParent, owner, -1, "mutex"}};
  wait.wakers_known = true;
  wait.is_stuck = true;
  return wait;
}

// The handler of libpool.so waits for a lock that the worker holds. The worker waits for `lock`. The forking thread
// holds `lock`.
model::Model inverted(std::uint64_t lock) {
  HandlerTrace scene;
  const std::uint64_t wait =
      scene.wait(scene.run(trace::HandlerPhase::kPrepare, 0), trace::HandlerWaitKind::kLock, scene.worker);
  scene.hold(wait, kEarlierLock);
  model::Model model = read_model(scene.trace);
  model.processes[kParentId].liveness = model::Liveness::kDead;
  model.processes[kParentId].waits = {lock_wait(test::kParent, test::kLockAddress, test::kHolder),
                                      lock_wait(test::kHolder, lock, test::kParent)};
  model.processes[kParentId].waits[1].name = "worker";
  model.handlers[0].functions[0] = "lock_pool";
  model.handlers[1].functions[0] = "lock_app";
  return model;
}

TEST(AtforkOrder, NamesBothHandlersAndBothLocks) {
  model::Model model = inverted(kEarlierLock);
  ASSERT_EQ(model.handler_runs.size(), 1U);
  ASSERT_EQ(model.handler_runs[0].holds.size(), 1U);
  model.handler_runs[0].waits[0].object_name = "pool_lock";
  model.handler_runs[0].holds[0].object_name = "app_lock";
  model.handler_runs[0].holds[0].taken_at = test::make_stack({"lock_app app.c:12"});
  model.handler_runs[0].holds[0].taken_at.frames[0].module = "/opt/app/app";
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-order");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].culprit.name, "prepare handler lock_pool (2nd of 2)");
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
  EXPECT_NE(findings[0].summary.find("locks pool_lock"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].summary.find("thread 1001 \"worker\" waits for app_lock, which prepare handler lock_app of app "
                                     "has taken"),
            std::string::npos)
      << findings[0].summary;
}

// One wait of the ring is a read from a pipe. If the program has a signal handler, the handler could end that wait.
TEST(AtforkOrder, IsAsCertainAsTheWeakestOfItsWaits) {
  constexpr std::int32_t kReader = test::kHolder + 1;
  model::Model model = inverted(kEarlierLock);
  auto& waits = model.processes[kParentId].waits;
  waits.push_back(waits[1]);
  waits[2].tid = kReader;
  waits[1].kind = model::WaitKind::kPipeRead;
  waits[1].use = model::FutexUse::kUnknown;
  waits[1].object = 0;
  waits[1].path = "pipe:[17]";
  waits[1].wakers = {{test::kParent, kReader, -1, "pipe"}};
  auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-order");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  model.processes[kParentId].liveness = model::Liveness::kDeadButForSignal;
  findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-order");
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
}

// The order of the handlers is not the cause if no handler took the lock, or if the worker is not known to wait for it.
TEST(AtforkOrder, IsSilentWhereNoHandlerTookTheLock) {
  const auto findings = diagnose(inverted(kEarlierLock + 0x40));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-handler-stuck");
  model::Model unproved = inverted(kEarlierLock);
  unproved.processes[kParentId].waits[1].is_stuck = false;
  ASSERT_EQ(diagnose(unproved).size(), 1U);
  EXPECT_EQ(diagnose(unproved)[0].rule, "atfork-handler-stuck");
}

model::Model stuck_in_child(bool touches) {
  HandlerTrace scene;
  scene.make_child();
  scene.run(trace::HandlerPhase::kChild, 1);
  if (touches) scene.touch();
  model::Model model = read_model(scene.trace);
  model.processes[kChildId].liveness = model::Liveness::kDead;
  model.processes[kChildId].waits = {test::futex_wait(test::kChild)};
  return model;
}

// One cause gives one finding. There is no second finding lost-wakeup or orphaned-mutex.
TEST(AtforkChildStuck, ReplacesTheFindingAboutTheLockThatTheHandlerTouched) {
  const auto findings = diagnose(stuck_in_child(true));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-child-stuck");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
  EXPECT_NE(findings[0].summary.find("no thread of the child holds"), std::string::npos) << findings[0].summary;
  ASSERT_TRUE(findings[0].fork);
  EXPECT_EQ(findings[0].fork->child, test::kChild);
}

// At an earlier fork, the thread that called fork() held the lock. That thread did not fork this child. So the finding
// must not say that the forking thread itself held the lock.
TEST(AtforkChildStuck, NamesTheThreadThatHeldTheLockAtAnEarlierFork) {
  model::Model model = stuck_in_child(true);
  const model::Touch& touch = model.touches.front();
  model::Fork& fork = model.forks[touch.fork];
  fork.held[*touch.held].by_forking_thread = true;
  auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("which the forking thread itself held"), std::string::npos) << findings[0].summary;
  fork.child = kParentId;
  findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].summary.find("the forking thread itself"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].summary.find("which thread " + std::to_string(test::kHolder)), std::string::npos)
      << findings[0].summary;
}

// In the child, an atfork handler starts a parallel region or ends the pool.
TEST(AtforkChildStuck, NamesTheLostPoolThatTheHandlerWaitsFor) {
  model::Model model = stuck_in_child(true);
  model::Touch& touch = model.touches.front();
  touch.kind = model::TouchKind::kParallel;
  touch.held.reset();
  touch.pool = model.pools.size();
  model::Pool pool;
  pool.kind = model::RuntimeKind::kLibgomp;
  pool.library = "/usr/lib/libgomp.so.1";
  pool.workers_lost = 1;
  model.pools.push_back(pool);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-child-stuck");
  EXPECT_NE(findings[0].summary.find("waits for its libgomp pool"), std::string::npos) << findings[0].summary;
  ASSERT_GE(findings[0].fixes.size(), 2U);
  EXPECT_NE(findings[0].fixes[1].text.find("--omp=rebuild"), std::string::npos);
}

TEST(AtforkChildStuck, IsFoundWithoutATouch) {
  const auto findings = diagnose(stuck_in_child(false));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-child-stuck");
  EXPECT_NE(findings[0].summary.find("does not return"), std::string::npos);
}

TEST(AtforkChildStuck, LeavesTouchesAfterTheHandlersToTheirRules) {
  HandlerTrace scene;
  scene.make_child();
  scene.run(trace::HandlerPhase::kChild, std::nullopt);
  scene.touch();
  model::Model model = read_model(scene.trace);
  model.processes[kChildId].liveness = model::Liveness::kDead;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
}

}  // namespace
}  // namespace forksight
