#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::LockScene;
using test::LockTrace;
using test::read_model;

constexpr int kRecursive = 1;
constexpr int kRobust = 0x10;
constexpr int kPriorityInherit = 0x20;

struct Kind {
  const char* name;
  const char* slug;
  LockScene scene;
};

// A lock of each kind, held by another thread at the fork.
const Kind kKinds[] = {
    {"Mutex", "orphaned-mutex", {}},
    {"RobustMutex",
     "orphaned-mutex",
     {.memory = test::mutex_memory(kRobust, test::kHolder, 0x8000'0000U | test::kHolder)}},
    {"RwlockWrite",
     "orphaned-rwlock",
     {.kind = trace::LockKind::kRwlockWrite, .memory = test::rwlock_memory(3, test::kHolder)}},
    {"RwlockRead", "orphaned-rwlock", {.kind = trace::LockKind::kRwlockRead, .memory = test::rwlock_memory(8, 0)}},
    {"Spinlock", "orphaned-spinlock", {.kind = trace::LockKind::kSpinlock, .memory = test::spinlock_memory(0)}},
    {"Semaphore", "orphaned-semaphore", {.kind = trace::LockKind::kSemaphore, .memory = test::semaphore_memory(0)}},
    {"Guard", "interrupted-static-init", {.kind = trace::LockKind::kGuard, .memory = test::guard_memory(0x10100)}},
    {"Custom", "orphaned-custom-lock", {.kind = trace::LockKind::kCustom, .memory = {0}}},
};

model::Model touched(const LockScene& lock, std::uint32_t flags = 0,
                     trace::TouchAction action = trace::TouchAction::kNone) {
  LockTrace scene(lock);
  scene.touch(trace::TouchKind::kLock, flags, action);
  return read_model(scene.trace);
}

model::Model touched_and_returned(const LockScene& lock, std::int32_t result, std::uint32_t flags = 0) {
  LockTrace scene(lock);
  scene.end(scene.touch(trace::TouchKind::kLock, flags), result);
  return read_model(scene.trace);
}

class OrphanedLock : public testing::TestWithParam<Kind> {};

TEST_P(OrphanedLock, IsOnlyLikelyIfAHandlerMayRunWithoutASender) {
  model::Model model = touched(GetParam().scene);
  model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  model.processes[1].may_be_timed_out = true;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
}

// A run watched the process until the process ended, and did not prove a hang. Perhaps the process was meant to wait
// until something ended it, so there is no finding. If the kernel refused every look at the process, the run could not
// have seen a hang, so there is a finding.
TEST_P(OrphanedLock, IsSilentIfARunWatchedTheProcessAndSawNoHang) {
  model::Model model = touched(GetParam().scene);
  model.command = {"program"};
  EXPECT_TRUE(diagnose(model).empty());
  model.processes[1].is_unreadable = true;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, GetParam().slug);
}

TEST_P(OrphanedLock, HangsIfTheCallDoesNotReturn) {
  model::Model model = touched(GetParam().scene);
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1400;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.rule, GetParam().slug);
  EXPECT_EQ(finding.harm, Certainty::kProven);
  EXPECT_EQ(finding.outcome, Outcome::kHang);
  EXPECT_EQ(model.processes[finding.process].pid, test::kChild);
  EXPECT_EQ(finding.tid, test::kChild);
  EXPECT_EQ(finding.culprit.kind, CulpritKind::kLock);
  EXPECT_EQ(finding.culprit.address, test::kLockAddress);
  ASSERT_TRUE(finding.culprit.holder.has_value());
  EXPECT_EQ(finding.culprit.holder->tid, test::kHolder);
  EXPECT_EQ(finding.culprit.holder->pid, test::kParent);
  EXPECT_FALSE(finding.culprit.holder->alive);
  ASSERT_TRUE(finding.fork.has_value());
  EXPECT_EQ(finding.fork->pid, test::kParent);
  EXPECT_EQ(finding.fork->child, test::kChild);
  EXPECT_EQ(finding.fingerprint.size(), 16U);
  EXPECT_FALSE(finding.chain.empty());
  EXPECT_FALSE(finding.fixes.empty());
}

TEST_P(OrphanedLock, IsSilentWithoutATouch) {
  LockTrace scene(GetParam().scene);
  model::Model model = read_model(scene.trace);
  EXPECT_TRUE(diagnose(model).empty());
}

TEST_P(OrphanedLock, IsSilentIfTheCallSucceeds) {
  EXPECT_TRUE(diagnose(touched_and_returned(GetParam().scene, 0)).empty());
}

TEST_P(OrphanedLock, IsAnErrorIfItTimesOut) {
  const auto findings = diagnose(touched_and_returned(GetParam().scene, ETIMEDOUT, trace::kTouchTimed));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, GetParam().slug);
  EXPECT_EQ(findings[0].outcome, Outcome::kError);
  // A semaphore records no owner. So it is not proven that, without the fork, a thread would have posted the semaphore
  // in time.
  const bool has_owner = GetParam().scene.kind != trace::LockKind::kSemaphore;
  EXPECT_EQ(findings[0].harm, has_owner ? Certainty::kProven : Certainty::kLikely);
  EXPECT_NE(findings[0].summary.find("ETIMEDOUT"), std::string::npos) << findings[0].summary;
}

TEST_P(OrphanedLock, IsALikelyErrorWhileACallWithATimeoutWaits) {
  const auto findings = diagnose(touched(GetParam().scene, trace::kTouchTimed));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kError);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
}

TEST_P(OrphanedLock, IsCuredByRecoveryAndNamesTheRisk) {
  LockTrace scene(GetParam().scene);
  scene.end(scene.touch(trace::TouchKind::kLock, 0, trace::TouchAction::kRecovered), 0);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kCured);
  std::string all;
  for (const std::string& sentence : findings[0].chain) all += sentence;
  EXPECT_NE(all.find("half-changed"), std::string::npos) << all;
}

TEST_P(OrphanedLock, IsAnErrorIfTheChildWasAborted) {
  const auto findings = diagnose(touched(GetParam().scene, 0, trace::TouchAction::kAborted));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kError);
  EXPECT_NE(findings[0].summary.find("--on-orphan=abort"), std::string::npos);
}

TEST_P(OrphanedLock, IsSilentIfTheThreadHasALaterTouch) {
  LockTrace scene(GetParam().scene);
  scene.touch(trace::TouchKind::kLock);
  scene.end(scene.touch(trace::TouchKind::kLock), 0);
  EXPECT_TRUE(diagnose(read_model(scene.trace)).empty());
}

TEST_P(OrphanedLock, IsSilentIfTheChildExitedWithStatusZero) {
  model::Model model = touched(GetParam().scene);
  model.processes[1].exit_status = 0;
  EXPECT_TRUE(diagnose(model).empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, OrphanedLock, testing::ValuesIn(kKinds),
                         [](const auto& test) { return test.param.name; });

TEST(OrphanedMutex, IsAnErrorIfLibcAbortsTheProcess) {
  const auto findings =
      diagnose(touched({.memory = test::mutex_memory(kPriorityInherit, test::kHolder, test::kHolder)}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kError);
  EXPECT_NE(findings[0].summary.find("is aborted by libc"), std::string::npos) << findings[0].summary;
}

TEST(OrphanedMutex, TheSummaryNamesTheLockTheHolderAndTheFork) {
  model::Model model = touched({});
  model.touches[0].stack = test::make_stack(
      {"__lll_lock_wait libc.so.6", "std::mutex::lock mutex:100", "get cache.cpp:31", "main app.cpp:50"});
  model.forks[0].held[0].acquired_at = test::make_stack({"fill cache.cpp:12", "run worker.cpp:9"});
  model.forks[0].stack = test::make_stack({"fork libc.so.6", "main app.cpp:20"});
  model.locks[0].name = "cache_mu";
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].summary,
            "child 2000 hangs locking cache_mu (cache.cpp:31): thread 1001 \"worker\" took it at cache.cpp:12 and was "
            "left behind by "
            "fork() at app.cpp:20");
}

TEST_P(OrphanedLock, IsSilentIfTheChildExecs) {
  model::Model model = touched(GetParam().scene);
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  model.processes[1].has_execed = true;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST_P(OrphanedLock, IsOnlyLikelyIfRecordsAreMissing) {
  model::Model model = touched(GetParam().scene);
  model.processes[1].has_gaps = true;
  ASSERT_EQ(diagnose(model).size(), 1U);
  EXPECT_EQ(diagnose(model)[0].harm, Certainty::kLikely);
  model.processes[1].liveness = model::Liveness::kDead;
  EXPECT_EQ(diagnose(model)[0].harm, Certainty::kProven) << "the look from outside proves the hang";
}

TEST(OrphanedMutex, IsSilentIfARobustMutexReportsItsDeadOwner) {
  const LockScene robust{.memory = test::mutex_memory(kRobust, test::kHolder, 0x4000'0000U | test::kHolder)};
  EXPECT_TRUE(diagnose(touched_and_returned(robust, EOWNERDEAD)).empty());
}

TEST(OrphanedMutex, IsAHangIfTheProcessSleepsInsteadOfAborting) {
  const LockScene inheriting{.memory = test::mutex_memory(kPriorityInherit, test::kHolder, test::kHolder)};
  model::Model model = touched(inheriting);
  ASSERT_EQ(diagnose(model).size(), 1U);
  EXPECT_EQ(diagnose(model)[0].outcome, Outcome::kError);
  model.processes[1].liveness = model::Liveness::kDead;
  EXPECT_EQ(diagnose(model)[0].outcome, Outcome::kHang);
  EXPECT_EQ(diagnose(model)[0].summary.find("abort"), std::string::npos);
}

TEST(OrphanedSemaphore, IsSilentIfASignalInterruptedTheWait) {
  const LockScene semaphore{.kind = trace::LockKind::kSemaphore, .memory = test::semaphore_memory(0)};
  EXPECT_TRUE(diagnose(touched_and_returned(semaphore, -1)).empty());
}

TEST(OrphanedMutex, IsLikelyIfTheChildExitedByItself) {
  model::Model model = touched({});
  model.processes[1].exit_status = 3 << 8;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
}

TEST(OrphanedMutex, IsCertainIfTheChildWasKilled) {
  model::Model model = touched({});
  model.processes[1].exit_status = 9;
  model.processes[1].liveness = model::Liveness::kEnded;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_NE(findings[0].summary.find("child 2000 hung locking"), std::string::npos);
  EXPECT_EQ(findings[0].chain.back(), "It was ended by signal 9 (SIGKILL).");
}

TEST(OrphanedSemaphore, IsNotReportedWhileAThreadOfTheChildGoesOn) {
  const LockScene semaphore{.kind = trace::LockKind::kSemaphore, .memory = test::semaphore_memory(0)};
  for (const model::Liveness goes_on :
       {model::Liveness::kAwake, model::Liveness::kSpinning, model::Liveness::kStalled}) {
    model::Model model = touched(semaphore);
    model.processes[1].liveness = goes_on;
    EXPECT_TRUE(diagnose(model).empty());
  }
}

TEST(OrphanedSemaphore, IsOnlyLikelyWithoutTheProof) {
  const LockScene semaphore{.kind = trace::LockKind::kSemaphore, .memory = test::semaphore_memory(0)};
  const auto findings = diagnose(touched(semaphore));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_EQ(findings[0].cause, Certainty::kLikely);

  model::Model with_handlers = touched(semaphore);
  with_handlers.processes[1].liveness = model::Liveness::kDeadButForSignal;
  EXPECT_EQ(diagnose(with_handlers).at(0).harm, Certainty::kLikely);
}

TEST(OrphanedSemaphore, IsNotReportedIfAHandlerMayPostIt) {
  model::Model model = touched({.kind = trace::LockKind::kSemaphore, .memory = test::semaphore_memory(0)});
  for (model::Process& process : model.processes) {
    process.liveness = model::Liveness::kDeadButForSignal;
    process.ways_out = {"a handler of SIGUSR1"};
  }
  EXPECT_TRUE(diagnose(model).empty());
  for (model::Process& process : model.processes) process.ways_out.clear();
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
}

// The thread that took the semaphore hangs, too. Perhaps it would never have posted the semaphore.
TEST(OrphanedSemaphore, HasOnlyAPossibleCauseIfTheTakerHangsToo) {
  model::Model model = touched({.kind = trace::LockKind::kSemaphore, .memory = test::semaphore_memory(0)});
  const model::ProcessId parent = model.forks[0].process;
  EXPECT_EQ(diagnose(model).at(0).cause, Certainty::kLikely);
  model.processes[parent].liveness = model::Liveness::kDead;
  EXPECT_EQ(diagnose(model).at(0).cause, Certainty::kPossible);
}

// The parent is itself the child of an earlier fork. Its first thread is a copy of a thread of the ancestor. That
// thread may have taken the semaphore before the earlier fork.
TEST(OrphanedSemaphore, HasOnlyAPossibleCauseIfItMayHaveBeenTakenBeforeAnEarlierFork) {
  model::Model model = touched({.kind = trace::LockKind::kSemaphore, .memory = test::semaphore_memory(0)});
  const model::Fork& fork = model.forks[0];
  model::Process& parent = model.processes[fork.process];
  model::Process ancestor = parent;
  ancestor.pid = parent.ppid = parent.pid + 50000;
  model.threads[fork.held[0].holder].tid = parent.pid;
  EXPECT_EQ(diagnose(model).at(0).cause, Certainty::kLikely);
  model.processes.push_back(ancestor);
  EXPECT_EQ(diagnose(model).at(0).cause, Certainty::kPossible);
  model.processes[fork.process].has_execed = true;
  EXPECT_EQ(diagnose(model).at(0).cause, Certainty::kLikely);
}

// A second fork, by another thread of the child, loses the copy of the thread that took the mutex.
TEST(OrphanedMutex, NamesTheThreadOfTheAncestorThatTookIt) {
  model::Model model = touched({.memory = test::mutex_memory(0, test::kParent, 1), .by_forking_thread = true});
  model::Fork second;
  second.process = *model.forks[0].child;
  model::Thread copy = model.threads[model.forks[0].forking_thread];
  copy.process = second.process;
  copy.tid = model.processes[second.process].pid;
  model.threads.push_back(copy);
  second.lost_threads = {model.threads.size() - 1};
  copy.tid += 1;
  model.threads.push_back(copy);
  second.forking_thread = model.threads.size() - 1;
  model::Process grandchild = model.processes[second.process];
  grandchild.pid += 2;
  model.processes.push_back(grandchild);
  second.child = model.processes.size() - 1;
  model.forks.push_back(second);
  model.touches[0].process = *second.child;
  model.touches[0].tid = grandchild.pid;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
  const auto has = [&](const std::string& part) {
    return std::ranges::any_of(findings[0].chain,
                               [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  const std::int32_t taker = model.threads[model.forks[0].forking_thread].tid;
  EXPECT_TRUE(has(fmt::format("At an earlier fork the lock was held by thread {}", taker)));
  EXPECT_TRUE(has("That thread called fork(): "));
  EXPECT_TRUE(has(fmt::format("of process {} began as its copy.", model.processes[second.process].pid)) ||
              has(fmt::format("of child {} began as its copy.", model.processes[second.process].pid)));
}

TEST(SelfHeldLock, ARefusedUnlockIsAnError) {
  LockTrace scene({.memory = test::mutex_memory(kRecursive, test::kParent, 1), .by_forking_thread = true});
  scene.end(scene.touch(trace::TouchKind::kUnlockRefused), EPERM);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "self-held-lock");
  EXPECT_EQ(findings[0].outcome, Outcome::kError);
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kParent);
}

TEST(SelfHeldLock, ALaterLockHangs) {
  LockTrace scene({.memory = test::mutex_memory(kRecursive, test::kParent, 1), .by_forking_thread = true});
  scene.end(scene.touch(trace::TouchKind::kUnlockRefused), EPERM);
  scene.touch(trace::TouchKind::kLock);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U) << "one cause gives one finding";
  EXPECT_EQ(findings[0].rule, "self-held-lock");
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  EXPECT_NE(findings[0].chain[0].find("refused (EPERM)"), std::string::npos) << findings[0].chain[0];
}

TEST(SelfHeldLock, ARecoveredLaterLockReplacesTheRefusedUnlock) {
  LockTrace scene({.memory = test::mutex_memory(kRecursive, test::kParent, 1), .by_forking_thread = true});
  scene.end(scene.touch(trace::TouchKind::kUnlockRefused), EPERM);
  scene.end(scene.touch(trace::TouchKind::kLock, 0, trace::TouchAction::kRecovered), 0);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kCured);
}

TEST(SelfHeldLock, ALockThatWasGivenToTheChildIsCured) {
  LockTrace scene({.memory = test::mutex_memory(kRecursive, test::kParent, 1), .by_forking_thread = true});
  scene.end(scene.touch(trace::TouchKind::kUnlockRefused, 0, trace::TouchAction::kGiven), 0);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kCured);
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_NE(findings[0].summary.find("would have failed unlocking"), std::string::npos) << findings[0].summary;
  ASSERT_FALSE(findings[0].fixes.empty());
  EXPECT_TRUE(findings[0].fixes[0].verified);
}

TEST(SelfHeldLock, ARefusedUnlockAndAHangInTwoProcessesAreTwoFindings) {
  LockTrace one({.memory = test::mutex_memory(kRecursive, test::kParent, 1), .by_forking_thread = true});
  one.end(one.touch(trace::TouchKind::kUnlockRefused), EPERM);
  LockTrace other({.memory = test::mutex_memory(kRecursive, test::kParent, 1), .by_forking_thread = true}, 2500);
  other.trace.host("node2");
  other.touch(trace::TouchKind::kLock);
  model::Model model = read_model(one.trace);
  test::read_into(model, other.trace);
  EXPECT_EQ(diagnose(model).size(), 2U);
}

TEST(SelfHeldLock, HoldingALockAcrossTheForkIsNoFinding) {
  LockTrace scene({.memory = test::mutex_memory(0, test::kParent, 1), .by_forking_thread = true});
  EXPECT_TRUE(diagnose(read_model(scene.trace)).empty());
}

}  // namespace
}  // namespace forksight
