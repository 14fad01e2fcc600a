// Tests the rules about deadlocks that no fork causes. The models contain what `why` and `run` read about processes
// through /proc and ptrace. They contain no traces of the shim.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "dead_process.hpp"
#include "diagnose/diagnose.hpp"
#include "diagnose/wait_cycles.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using model::FutexUse;
using model::WaitKind;

model::Wait wait(std::int32_t tid, WaitKind kind, std::vector<model::Waker> wakers, std::string path = "") {
  model::Wait wait;
  wait.tid = tid;
  wait.name = "app";
  wait.kind = kind;
  wait.path = std::move(path);
  wait.wakers_known = true;
  wait.wakers = std::move(wakers);
  wait.is_stuck = true;
  return wait;
}

model::Wait futex(std::int32_t tid, FutexUse use, model::Waker waker, std::string name = "") {
  model::Wait result = wait(tid, WaitKind::kFutex, {std::move(waker)});
  result.use = use;
  result.owner = result.wakers.front().tid;
  result.object = 0x1000 + static_cast<std::uint64_t>(tid);
  result.object_name = std::move(name);
  return result;
}

model::Wait mutex(std::int32_t tid, std::int32_t owner, std::string name = "") {
  return futex(tid, FutexUse::kMutex, {100, owner, -1, "mutex"}, std::move(name));
}

Finding only_finding(const model::Model& model) {
  const auto findings = diagnose(model);
  EXPECT_EQ(findings.size(), 1U);
  return findings.empty() ? Finding{} : findings.front();
}

TEST(LockCycle, NamesTheRingAndNotTheThreadThatWaitsForIt) {
  const auto found =
      only_finding(model_of({dead_process(100, {futex(100, FutexUse::kJoin, {100, 101, -1, "join"}),
                                                mutex(101, 102, "lock_a"), mutex(102, 101, "lock_b")})}));
  EXPECT_EQ(found.rule, "lock-cycle");
  EXPECT_EQ(found.harm, Certainty::kProven);
  EXPECT_EQ(found.tid, 101);
  EXPECT_EQ(found.culprit.name, "lock_a (mutex)");
  EXPECT_EQ(found.culprit.holder->tid, 102);
  EXPECT_NE(found.summary.find("2 threads hang in a ring of locks in process 100"), std::string::npos) << found.summary;
}

TEST(LockCycle, IsCertainWhateverTheOtherThreadsDo) {
  model::Model model = model_of({dead_process(100, {mutex(101, 102), mutex(102, 101)})});
  model.processes[0].liveness = model::Liveness::kAwake;
  EXPECT_EQ(only_finding(model).harm, Certainty::kProven);
  model.processes[0].waits[0].is_stuck = false;
  EXPECT_TRUE(diagnose(model).empty());
}

// A signal handler may jump out of the wait for the lock.
TEST(LockCycle, IsOnlyLikelyIfAHandlerMayRunWithoutASender) {
  model::Model model = model_of({dead_process(100, {mutex(101, 102), mutex(102, 101)})});
  model.processes[0].liveness = model::Liveness::kDeadButForSignal;
  model.processes[0].ways_out = {"a handler of SIGTERM"};
  EXPECT_EQ(only_finding(model).harm, Certainty::kProven);
  model.processes[0].may_be_timed_out = true;
  EXPECT_EQ(only_finding(model).harm, Certainty::kLikely);
  EXPECT_EQ(only_finding(model).cause, Certainty::kProven);
}

TEST(LockCycle, IsOnlyLikelyWhereAThreadMayBeCancelledAnywhere) {
  model::Model model = model_of({dead_process(100, {mutex(101, 102), mutex(102, 101)})});
  model.processes[0].waits[0].may_be_cancelled = true;
  EXPECT_EQ(only_finding(model).harm, Certainty::kProven) << "all threads sleep, so none cancels another";
  model.processes[0].liveness = model::Liveness::kAwake;
  EXPECT_EQ(only_finding(model).harm, Certainty::kLikely);
}

// Wherever the ring begins, the finding blames the mutex and not the GIL, because the program can change only the
// mutex.
TEST(LockCycle, MayIncludeTheGil) {
  model::Model model =
      model_of({dead_process(100, {futex(101, FutexUse::kGil, {100, 102, -1, "GIL"}), mutex(102, 101, "cache_lock")})});
  model.processes[0].liveness = model::Liveness::kAwake;  // a thread that waits for a GIL wakes up again and again
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "lock-cycle");
  EXPECT_EQ(found.harm, Certainty::kProven);
  EXPECT_EQ(found.culprit.name, "cache_lock (mutex)");
  EXPECT_EQ(found.culprit.holder->tid, 101);
  EXPECT_NE(found.summary.find("thread 101 \"app\" waits for Python's GIL"), std::string::npos) << found.summary;
  EXPECT_NE(found.fixes.front().text.find("Py_BEGIN_ALLOW_THREADS"), std::string::npos);
  model.processes[0].waits[0].may_be_cancelled = true;  // a thread that is awake may cancel a waiting thread
  EXPECT_EQ(only_finding(model).harm, Certainty::kLikely);
}

TEST(LockCycle, IsSilentIfTheHolderOfTheGilWaitsForNoThreadOfTheRing) {
  model::Model model =
      model_of({dead_process(100, {futex(101, FutexUse::kGil, {100, 102, -1, "GIL"}), mutex(102, 101)})});
  model.processes[0].liveness = model::Liveness::kAwake;
  model.processes[0].waits[1].wakers = {{100, 0, -1, "futex"}};
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(JoinCycle, MayIncludeTheGil) {
  model::Model model = model_of({dead_process(
      100, {futex(100, FutexUse::kJoin, {100, 101, -1, "join"}), futex(101, FutexUse::kGil, {100, 100, -1, "GIL"})})});
  model.processes[0].liveness = model::Liveness::kAwake;
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "join-cycle");
  EXPECT_EQ(found.harm, Certainty::kProven);
  EXPECT_EQ(found.culprit.name, "Python's GIL");
  EXPECT_NE(found.fixes.front().text.find("Py_BEGIN_ALLOW_THREADS"), std::string::npos);
  model.processes[0].waits[1].may_be_cancelled = true;  // a thread that is awake may cancel a waiting thread
  EXPECT_EQ(only_finding(model).harm, Certainty::kLikely);
}

TEST(LockCycle, MayGoAcrossProcesses) {
  model::Model model = model_of({dead_process(100, {mutex(100, 0)}), dead_process(200, {mutex(200, 0)})});
  model.processes[0].waits[0].wakers = {{200, 200, -1, "mutex"}};
  model.processes[1].waits[0].wakers = {{100, 100, -1, "mutex"}};
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "lock-cycle");
  EXPECT_EQ(found.processes.size(), 2U);
}

TEST(LockCycle, TwoRingsAreFoundSeparately) {
  const auto model =
      model_of({dead_process(100, {mutex(1, 2, "a"), mutex(2, 1, "b"), mutex(3, 4, "c"), mutex(4, 3, "d")})});
  EXPECT_EQ(cycles::find_cycles(model).found.size(), 2U);
  const cycles::Cycles few = cycles::find_cycles(model, 1);
  EXPECT_TRUE(few.found.empty());
  EXPECT_FALSE(few.is_complete);
  EXPECT_TRUE(cycles::find_cycles(model).is_complete);
}

model::Model in_vfork(model::Wait childs) {
  model::Model model = model_of({dead_process(100, {wait(100, WaitKind::kVfork, {{200, 0, -1, "vfork"}})}),
                                 dead_process(200, {std::move(childs)})});
  model.processes[0].waits[0].name = "shell";
  return model;
}

TEST(VforkMisuse, IsReportedIfTheChildNeedsALockOfTheThreadThatWaitsForIt) {
  const Finding found = only_finding(in_vfork(mutex(200, 100, "registry")));
  EXPECT_EQ(found.rule, "vfork-misuse");
  EXPECT_EQ(found.harm, Certainty::kProven);
  EXPECT_EQ(found.process, 1U);
  EXPECT_EQ(found.processes.size(), 2U);
  EXPECT_EQ(found.culprit.name, "registry (mutex)");
  EXPECT_EQ(found.culprit.holder->tid, 100);
  EXPECT_EQ(
      found.summary,
      "process 200, a child of vfork(), hangs locking registry: thread 100 \"shell\" of process 100 (app) has it, "
      "and sleeps in vfork() until this child execs or ends");
}

TEST(VforkMisuse, IsCertainForALockDespiteSignalHandlers) {
  model::Model model = in_vfork(mutex(200, 100));
  model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  EXPECT_EQ(only_finding(model).harm, Certainty::kProven);
  model = in_vfork(wait(200, WaitKind::kPipeRead, {{100, 0, 4, "pipe"}, {200, 0, 4, "pipe"}}, "pipe:[17]"));
  EXPECT_EQ(only_finding(model).harm, Certainty::kProven);
  EXPECT_EQ(only_finding(model).culprit.kind, CulpritKind::kThread);
  model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  EXPECT_EQ(only_finding(model).harm, Certainty::kLikely);
}

TEST(VforkMisuse, IsReportedWithoutARing) {
  model::Model model = in_vfork(futex(200, FutexUse::kUnknown, {200, 0, -1, "futex"}));
  model.processes[0].liveness = model::Liveness::kVictim;
  model.processes[0].waits_for = 1;
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "vfork-misuse");
  EXPECT_EQ(found.processes.size(), 1U);
  EXPECT_EQ(found.victims.size(), 1U);
}

TEST(VforkMisuse, IsReportedIfTheChildCallsExit) {
  model::Model model = model_of({dead_process(100, {})});
  model.processes[0].liveness = model::Liveness::kEnded;
  model.vfork_exits.push_back({0, 200, 101, test::make_stack({"start app.c:31", "main app.c:40"})});
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "vfork-misuse");
  EXPECT_EQ(found.harm, Certainty::kProven);
  EXPECT_EQ(found.outcome, Outcome::kCorruption);
  EXPECT_EQ(found.tid, 101);
  EXPECT_EQ(
      found.summary,
      "process 200, a child of vfork(), called exit() at app.c:31: the exit handlers of its parent, process 100, ran "
      "in the parent's own memory");
}

TEST(VforkMisuse, IsSilentOfAChildThatGoesOnOrIsAVictim) {
  model::Model model = in_vfork(mutex(200, 100));
  model.processes[0].waits[0].is_stuck = false;
  model.processes[1].waits[0].is_stuck = false;
  model.processes[1].liveness = model::Liveness::kAwake;
  EXPECT_TRUE(diagnose(model).empty());
  model = in_vfork(wait(200, WaitKind::kWaitChild, {{300, 0, -1, "wait4"}}));
  model.processes[1].liveness = model::Liveness::kVictim;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(SelfDeadlock, IsAThreadThatWaitsForItsOwnLock) {
  const Finding found = only_finding(model_of({dead_process(100, {mutex(100, 100, "table_lock")})}));
  EXPECT_EQ(found.rule, "self-deadlock");
  EXPECT_EQ(found.harm, Certainty::kProven);
}

// A thread that is awake could unlock the mutex, although only the owner may do so.
TEST(SelfDeadlock, IsLikelyWhereTheProcessGoesOn) {
  model::Model model = model_of({dead_process(100, {mutex(101, 101, "table_lock")})});
  model.processes[0].liveness = model::Liveness::kAwake;
  model.processes[0].waits[0].mutex_type = model::MutexType::kNormal;
  const Finding found = only_finding(model);
  EXPECT_EQ(found.harm, Certainty::kLikely);
  EXPECT_NE(found.summary.find("a thread of process 100 hangs locking table_lock"), std::string::npos) << found.summary;
  model.processes[0].liveness = model::Liveness::kDead;
  EXPECT_EQ(only_finding(model).harm, Certainty::kProven);
}

TEST(RwlockUpgrade, TheCauseIsProvenOnlyIfTheProcessNeverHadOtherThreads) {
  model::Wait upgrade = futex(100, FutexUse::kRwlockWrite, {100, 0, -1, "rwlock"}, "table_lock");
  upgrade.readers = 1;
  model::Model lone = model_of({dead_process(100, {upgrade})});
  lone.processes[0].never_had_other_threads = true;
  EXPECT_EQ(only_finding(lone).harm, Certainty::kProven);
  EXPECT_EQ(only_finding(lone).cause, Certainty::kProven);
  lone.processes[0].never_had_other_threads = false;
  EXPECT_EQ(only_finding(lone).cause, Certainty::kPossible) << "the reader may be a thread that has ended";
  const auto beside = model_of({dead_process(100, {upgrade, futex(101, FutexUse::kUnknown, {100, 0, -1, "futex"})})});
  EXPECT_EQ(only_finding(beside).rule, "rwlock-upgrade");
  EXPECT_EQ(only_finding(beside).harm, Certainty::kProven);
  EXPECT_EQ(only_finding(beside).cause, Certainty::kPossible);
  upgrade.readers = 0;
  EXPECT_TRUE(diagnose(model_of({dead_process(100, {upgrade})})).empty());
}

TEST(RwlockUpgrade, AThreadThatJoinsTheWriterIsTheFirstSuspect) {
  model::Wait upgrade = futex(101, FutexUse::kRwlockWrite, {100, 0, -1, "rwlock"}, "table_lock");
  upgrade.readers = 1;
  const model::Wait join = futex(100, FutexUse::kJoin, {100, 101, -1, "join"});
  const Finding found = only_finding(model_of({dead_process(100, {join, upgrade})}));
  EXPECT_EQ(found.rule, "rwlock-upgrade");
  EXPECT_EQ(found.cause, Certainty::kPossible) << "the writer itself may hold the lock for reading";
  ASSERT_TRUE(found.culprit.holder.has_value());
  EXPECT_EQ(found.culprit.holder->tid, 100);
  EXPECT_NE(found.summary.find("thread 100 possibly holds it for reading and waits for thread 101"), std::string::npos)
      << found.summary;
  // Thread 100 joins a thread other than the writer. So thread 100 is no more suspect than any other thread. The
  // finding must not name thread 100.
  const model::Wait elsewhere = futex(100, FutexUse::kJoin, {100, 102, -1, "join"});
  const model::Wait third = futex(102, FutexUse::kUnknown, {100, 0, -1, "futex"});
  EXPECT_EQ(only_finding(model_of({dead_process(100, {elsewhere, third, upgrade})})).summary.find("thread 100"),
            std::string::npos);
}

TEST(RwlockUpgrade, CountsReadLocksAndNotReaders) {
  model::Wait upgrade = futex(100, FutexUse::kRwlockWrite, {100, 0, -1, "rwlock"}, "table_lock");
  upgrade.readers = 2;
  const Finding found = only_finding(model_of({dead_process(100, {upgrade})}));
  EXPECT_EQ(found.chain.front(),
            "Thread 100 waits to lock table_lock for writing, and it is locked for reading 2 times.");
}

TEST(JoinCycle, WithAndWithoutALock) {
  const auto locked = only_finding(model_of(
      {dead_process(100, {futex(100, FutexUse::kJoin, {100, 101, -1, "join"}), mutex(101, 100, "state_lock")})}));
  EXPECT_EQ(locked.rule, "join-cycle");
  EXPECT_EQ(locked.culprit.name, "state_lock (mutex)");
  const auto ring = only_finding(model_of({dead_process(100, {futex(100, FutexUse::kJoin, {100, 101, -1, "join"}),
                                                              futex(101, FutexUse::kJoin, {100, 100, -1, "join"})})}));
  EXPECT_EQ(ring.rule, "join-cycle");
  EXPECT_EQ(ring.culprit.kind, CulpritKind::kThread);
}

// A thread that is awake could call pthread_cancel(), which ends a join.
TEST(JoinCycle, IsLikelyWhereTheProcessGoesOn) {
  model::Model model = model_of({dead_process(100, {futex(100, FutexUse::kJoin, {100, 101, -1, "join"}),
                                                    futex(101, FutexUse::kJoin, {100, 100, -1, "join"})})});
  EXPECT_EQ(only_finding(model).harm, Certainty::kProven);
  model.processes[0].liveness = model::Liveness::kAwake;
  EXPECT_EQ(only_finding(model).harm, Certainty::kLikely);
}

TEST(FlockDeadlock, IsReportedForRingsWithOtherWaits) {
  const model::Wait lock = wait(200, WaitKind::kFileLock, {{100, 0, 3, "flock"}}, "/run/a.lock");
  const auto pure =
      only_finding(model_of({dead_process(100, {wait(100, WaitKind::kFileLock, {{200, 0, 4, "flock"}}, "/run/b.lock")}),
                             dead_process(200, {lock})}));
  EXPECT_EQ(pure.rule, "flock-deadlock");
  EXPECT_EQ(pure.culprit.name, "/run/b.lock");
  EXPECT_EQ(pure.culprit.kind, CulpritKind::kFileLock);
  const auto crossed =
      only_finding(model_of({dead_process(100, {wait(100, WaitKind::kPipeRead, {{200, 0, 4, "pipe"}}, "pipe:[7]")}),
                             dead_process(200, {lock})}));
  EXPECT_EQ(crossed.rule, "flock-deadlock");
  EXPECT_EQ(crossed.culprit.name, "/run/a.lock");
}

TEST(PipeHeldOpen, NamesTheReaderOrTheProcessThatWaitsForIt) {
  const auto own =
      only_finding(model_of({dead_process(100, {wait(100, WaitKind::kPipeRead, {{100, 0, 4, "pipe"}}, "pipe:[7]")})}));
  EXPECT_EQ(own.rule, "pipe-held-open");
  EXPECT_NE(own.summary.find("itself"), std::string::npos);
  const auto parent =
      only_finding(model_of({dead_process(100, {wait(100, WaitKind::kWaitChild, {{200, 0, -1, "wait4"}})}),
                             dead_process(200, {wait(200, WaitKind::kPipeRead, {{100, 0, 4, "pipe"}}, "pipe:[7]")})}));
  EXPECT_EQ(parent.rule, "pipe-held-open");
  EXPECT_EQ(parent.tid, 200);
  EXPECT_NE(parent.summary.find("process 100 has it open for writing (descriptor 4)"), std::string::npos)
      << parent.summary;
}

TEST(PipeHeldOpen, OfASocketNamesOnlyTheOtherEnd) {
  const auto own = only_finding(model_of({dead_process(
      100, {wait(100, WaitKind::kSocketRead, {{100, 0, 4, "socket"}, {100, 0, 3, "shutdown"}}, "socket:[7]")})}));
  EXPECT_EQ(own.rule, "pipe-held-open");
  EXPECT_EQ(own.chain[2],
            "A reader gets end of file when the last writing end is closed. These are open: the reader itself "
            "(descriptor 4).");
}

TEST(PipeDeadlock, IsReportedForAFullPipeAndForTwoReaders) {
  const model::Wait child = wait(200, WaitKind::kPipeWrite, {{100, 0, 4, "pipe"}}, "pipe:[7]");
  const auto unread = only_finding(model_of(
      {dead_process(100, {wait(100, WaitKind::kWaitChild, {{200, 0, -1, "wait4"}})}), dead_process(200, {child})}));
  EXPECT_EQ(unread.rule, "pipe-deadlock");
  EXPECT_EQ(unread.tid, 200);
  const auto silent = only_finding(model_of(
      {dead_process(100,
                    {wait(100, WaitKind::kSocketRead, {{200, 0, 4, "socket"}, {100, 0, 3, "shutdown"}}, "socket:[7]")}),
       dead_process(
           200, {wait(200, WaitKind::kSocketRead, {{100, 0, 3, "socket"}, {200, 0, 4, "shutdown"}}, "socket:[8]")})}));
  EXPECT_EQ(silent.rule, "pipe-deadlock");
  EXPECT_EQ(silent.processes.size(), 2U);
}

TEST(PipeDeadlock, SaysThatAThreadWritesToAFullEventfd) {
  const Finding found = only_finding(
      model_of({dead_process(100, {wait(100, WaitKind::kEventfdWrite, {{100, 0, 4, "eventfd"}}, "eventfd:7")})}));
  EXPECT_EQ(found.rule, "pipe-deadlock");
  EXPECT_NE(found.summary.find("writing to eventfd:7"), std::string::npos) << found.summary;
  EXPECT_NE(found.chain[0].find("whose count has no room for the number"), std::string::npos) << found.chain[0];
  EXPECT_TRUE(found.chain[2].starts_with("The count of an eventfd has a limit")) << found.chain[2];
  const Finding reader = only_finding(
      model_of({dead_process(100, {wait(100, WaitKind::kEventfd, {{100, 0, 4, "eventfd"}}, "eventfd:7")})}));
  EXPECT_NE(reader.summary.find("reading from eventfd:7"), std::string::npos) << reader.summary;
}

// If all threads of the ring belong to one process, no sentence of the finding may mention another process.
TEST(PipeDeadlock, NamesThreadsWhereTheRingIsInOneProcess) {
  const Finding found =
      only_finding(model_of({dead_process(100, {futex(100, FutexUse::kMutex, {100, 101, -1, "mutex"}),
                                                wait(101, WaitKind::kPipeRead, {{100, 0, 4, "pipe"}}, "pipe:[7]")})}));
  EXPECT_EQ(found.rule, "pipe-deadlock");
  EXPECT_NE(found.summary.find("and thread 100 \"app\" of the same process waits, too: only thread 101 \"app\" could "
                               "end that wait"),
            std::string::npos)
      << found.summary;
  for (const std::string& sentence : found.chain)
    EXPECT_EQ(sentence.find("another process"), std::string::npos) << sentence;
  for (const Fix& fix : found.fixes) EXPECT_EQ(fix.text.find("another process"), std::string::npos) << fix.text;
}

TEST(PipeDeadlock, IsOnlyLikelyWhereAHandlerCouldEndIt) {
  model::Model model =
      model_of({dead_process(100, {wait(100, WaitKind::kPipeRead, {{100, 0, 4, "pipe"}}, "pipe:[7]")})});
  model.processes[0].liveness = model::Liveness::kDeadButForSignal;
  EXPECT_EQ(only_finding(model).harm, Certainty::kLikely);
  model.processes[0].ways_out = {"a handler of SIGALRM"};
  EXPECT_TRUE(diagnose(model).empty()) << "the handler may write into this pipe (a self-pipe)";
  model.processes[0].liveness = model::Liveness::kVictim;
  EXPECT_TRUE(diagnose(model).empty()) << "another process is the cause";
}

TEST(AbandonedSharedLock, IsOneFindingForAllThatWait) {
  model::Wait lock = mutex(100, 77);
  lock.wakers.clear();
  lock.is_shared = true;
  lock.owner_is_gone = true;
  lock.path = "/dev/shm/jobs";
  model::Wait other = lock;
  other.tid = 200;
  const Finding found = only_finding(model_of({dead_process(100, {lock}), dead_process(200, {other})}));
  EXPECT_EQ(found.rule, "abandoned-shared-lock");
  EXPECT_EQ(found.processes.size(), 2U);
  EXPECT_NE(found.summary.find("thread 77 took it and does not exist any more"), std::string::npos) << found.summary;
  lock.owner_is_gone = false;
  EXPECT_TRUE(diagnose(model_of({dead_process(100, {lock})})).empty());
}

TEST(AbandonedSharedLock, SaysAnonymousMemoryForMemoryWithoutAFile) {
  model::Wait lock = wait(100, WaitKind::kFutex, {{100, 0, -1, "shared memory"}}, "/dev/zero (deleted)");
  lock.is_shared = true;
  EXPECT_TRUE(cycles::object(lock).ends_with(" in anonymous shared memory")) << cycles::object(lock);
}

model::Wait shared_semaphore(std::int32_t tid, std::vector<model::Waker> wakers, model::SemaphoreUse use) {
  model::Wait semaphore = wait(tid, WaitKind::kFutex, std::move(wakers), "/dev/shm/sem.mp-x (deleted)");
  semaphore.is_shared = true;
  semaphore.semaphore_use = use;
  return semaphore;
}

TEST(QueueLockAbandoned, HangIsAsCertainAsTheSleepOfItsProcesses) {
  model::Wait semaphore =
      shared_semaphore(100, {{100, 0, -1, "shared memory"}}, model::SemaphoreUse::kLockWithoutHolder);
  model::Model model = model_of({dead_process(100, {semaphore})});
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "queue-lock-abandoned");
  EXPECT_EQ(found.harm, Certainty::kProven);
  EXPECT_EQ(found.cause, Certainty::kLikely);
  model.processes[0].liveness = model::Liveness::kDeadButForSignal;
  EXPECT_EQ(only_finding(model).harm, Certainty::kLikely);
  semaphore.path = "/dev/zero (deleted)";
  EXPECT_TRUE(diagnose(model_of({dead_process(100, {semaphore})})).empty());
}

TEST(QueueLockAbandoned, IsAGuessUnlessEachProcessIsKnownNotToHoldIt) {
  const std::vector<model::Waker> wakers{{200, 0, -1, "shared memory"}, {300, 0, -1, "shared memory"}};
  const model::Wait joins = wait(300, WaitKind::kWaitChild, {{200, 0, -1, "wait4"}});
  const auto find_with = [&](model::SemaphoreUse use) {
    return only_finding(
        model_of({dead_process(200, {shared_semaphore(200, wakers, use)}), dead_process(300, {joins})}));
  };
  for (const model::SemaphoreUse use : {model::SemaphoreUse::kUnknown, model::SemaphoreUse::kCounts}) {
    const Finding guess = find_with(use);
    EXPECT_EQ(guess.rule, "queue-lock-abandoned");
    EXPECT_EQ(guess.cause, Certainty::kPossible);
    EXPECT_EQ(guess.processes.size(), 2U) << "process 300 may be the one that should post";
    EXPECT_TRUE(guess.victims.empty());
  }
  const Finding found = find_with(model::SemaphoreUse::kLockWithoutHolder);
  EXPECT_EQ(found.cause, Certainty::kLikely);
  EXPECT_EQ(found.processes.size(), 1U);
  ASSERT_EQ(found.victims.size(), 1U) << "process 300 does not hold the lock, it only waits for process 200";
  EXPECT_EQ(found.victims.front().pid, 300);
}

TEST(SemaphoreLock, ItsHolderClosesTheRing) {
  const auto held_by = [](std::int32_t tid, std::int32_t holder) {
    return shared_semaphore(tid, {{holder, holder, -1, model::kViaSemaphoreLock}}, model::SemaphoreUse::kLockHeld);
  };
  const Finding join =
      only_finding(model_of({dead_process(100, {wait(100, WaitKind::kWaitChild, {{200, 0, -1, "wait4"}})}),
                             dead_process(200, {held_by(200, 100)})}));
  EXPECT_EQ(join.rule, "join-cycle");
  EXPECT_EQ(join.cause, Certainty::kLikely);
  const Finding twice = only_finding(model_of({dead_process(200, {held_by(200, 200)})}));
  EXPECT_EQ(twice.rule, "self-deadlock");
  const Finding ring =
      only_finding(model_of({dead_process(200, {held_by(200, 300)}), dead_process(300, {held_by(300, 200)})}));
  EXPECT_EQ(ring.rule, "lock-cycle");
  EXPECT_EQ(ring.culprit.name, "a lock of multiprocessing");
}

TEST(SemaphoreLock, ARingWithoutItIsTheCause) {
  // Worker 200 holds a lock and reads from a pipe of the parent. Worker 100 is idle and waits for the lock. The parent
  // waits for the end of any child.
  const auto parent =
      dead_process(300, {wait(300, WaitKind::kWaitChild, {{100, 0, -1, "wait4"}, {200, 0, -1, "wait4"}})});
  const auto idle = dead_process(
      100, {shared_semaphore(100, {{200, 200, -1, model::kViaSemaphoreLock}}, model::SemaphoreUse::kLockHeld)});
  const auto reader = dead_process(200, {wait(200, WaitKind::kPipeRead, {{300, 0, 4, "pipe"}}, "pipe:[7]")});
  const Finding found = only_finding(model_of({idle, reader, parent}));
  EXPECT_EQ(found.rule, "pipe-held-open");
  EXPECT_EQ(found.processes.size(), 2U);
  ASSERT_EQ(found.victims.size(), 1U);
  EXPECT_EQ(found.victims.front().pid, 100);
}

TEST(JoinCycle, MayIncludeAChildThatNeedsALock) {
  model::Model model = model_of({dead_process(100, {wait(100, WaitKind::kWaitChild, {{200, 0, -1, "wait4"}})}),
                                 dead_process(200, {mutex(200, 100, "state_lock")})});
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "join-cycle");
  EXPECT_EQ(found.harm, Certainty::kProven);
  EXPECT_EQ(found.culprit.name, "state_lock (mutex)");
  EXPECT_NE(found.summary.find("in waitpid(): process 100 \"app\" waits for the end of process 200"), std::string::npos)
      << found.summary;
  EXPECT_EQ(found.processes.size(), 2U);
}

TEST(PipeDeadlock, NamesTheReaderIfTheRingHasALock) {
  const Finding found = only_finding(model_of(
      {dead_process(100, {mutex(100, 101, "state_lock"), wait(101, WaitKind::kWaitChild, {{200, 0, -1, "wait4"}})}),
       dead_process(200, {wait(200, WaitKind::kPipeRead, {{100, 100, 4, "pipe"}}, "pipe:[7]")})}));
  EXPECT_EQ(found.rule, "pipe-deadlock");
  EXPECT_EQ(found.tid, 200);
  EXPECT_EQ(found.culprit.name, "pipe:[7]");
  EXPECT_NE(found.summary.find("process 200 hangs reading from pipe:[7], and process 100"), std::string::npos)
      << found.summary;
}

TEST(PipeDeadlock, OfAProcessThatPollsSaysThatItsParentWaits) {
  const Finding found = only_finding(
      model_of({dead_process(100, {wait(100, WaitKind::kWaitChild, {{200, 0, -1, "wait4"}})}),
                dead_process(200, {wait(200, WaitKind::kPoll, {{100, 0, 4, "pipe"}})})}));
  EXPECT_EQ(found.rule, "pipe-deadlock");
  EXPECT_EQ(found.process, 1U);
  EXPECT_NE(found.summary.find("process 200 hangs in poll(), and process 100 waits for its end"), std::string::npos)
      << found.summary;
  const auto says = [&](std::string_view text) {
    return std::ranges::any_of(found.chain, [&](const std::string& one) { return one.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says("While process 100 waits, it neither uses the other end nor closes it. So process 200 gets no data"));
  EXPECT_FALSE(says("waits until another one of them writes first"));
}

TEST(LockCycle, NamesTheLockOfAStream) {
  const auto found =
      only_finding(model_of({dead_process(100, {mutex(101, 102, "_IO_stdfile_1_lock"), mutex(102, 101, "b")})}));
  EXPECT_EQ(found.rule, "lock-cycle");
  EXPECT_NE(found.summary.find("waits for the lock of stdout"), std::string::npos) << found.summary;
}

model::Stack python_lines(std::initializer_list<std::pair<const char*, const char*>> lines) {
  model::Stack stack;
  for (const auto& [function, file] : lines) {
    model::Frame frame;
    frame.function = function;
    frame.file = *file == '/' ? file : std::string("/usr/lib/python3.11/multiprocessing/") + file;
    frame.line = 7;
    frame.python = true;
    stack.frames.push_back(frame);
  }
  return stack;
}

using Lines = std::initializer_list<std::pair<const char*, const char*>>;

bool names_asyncio(WaitKind kind, Lines lines) {
  model::Wait waits = wait(100, kind, {{100, 0, 4, "pipe"}});
  waits.stack = python_lines(lines);
  const Finding found = only_finding(model_of({dead_process(100, {waits})}));
  EXPECT_EQ(found.rule, "pipe-deadlock");
  return std::ranges::any_of(found.chain,
                             [](const std::string& sentence) { return sentence.find("asyncio") != std::string::npos; });
}

TEST(PipeDeadlock, NamesAsyncioOnlyIfTheEventLoopItselfPolls) {
  constexpr const char* kLoop = "/usr/lib/python3.11/asyncio/base_events.py";
  constexpr const char* kSelectors = "/usr/lib/python3.11/selectors.py";
  EXPECT_TRUE(names_asyncio(WaitKind::kPoll, {{"select", kSelectors}, {"_run_once", kLoop}}));
  EXPECT_FALSE(
      names_asyncio(WaitKind::kPoll, {{"select", kSelectors}, {"fetch", "/app/fetch.py"}, {"_run_once", kLoop}}));
  EXPECT_FALSE(names_asyncio(WaitKind::kPoll, {{"fetch", "/app/fetch.py"}, {"_run_once", kLoop}}));
}

// If the program made an executor before the fork, the fork lost the workers of the executor. The event loop may wait
// for such a worker. Nothing shows whether the event loop waits for a worker.
TEST(PipeDeadlock, HasAPossibleCauseIfAnEventLoopsChildLostThreads) {
  model::Wait polls = wait(200, WaitKind::kPoll, {{200, 0, 5, "socket"}});
  polls.stack = python_lines(
      {{"select", "/usr/lib/python3.11/selectors.py"}, {"_run_once", "/usr/lib/python3.11/asyncio/base_events.py"}});
  model::Model model = model_of({dead_process(100, {}), dead_process(200, {polls})});
  model.processes[0].liveness = model::Liveness::kVictim;
  EXPECT_EQ(only_finding(model).cause, Certainty::kProven);
  model::Thread worker;
  worker.process = 0;
  worker.tid = 101;
  model.threads = {worker, worker};
  model.forks.emplace_back();
  model.forks[0].process = 0;
  model.forks[0].child = 1;
  model.forks[0].lost_threads = {0};
  model.forks[0].forking_thread = 1;
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "pipe-deadlock");
  EXPECT_EQ(found.harm, Certainty::kProven);
  EXPECT_EQ(found.cause, Certainty::kPossible);
  EXPECT_TRUE(
      std::ranges::any_of(found.fixes, [](const Fix& fix) { return fix.text.starts_with("Make each executor"); }));
}

// One thread of the parent waits for a result. Another thread of the parent polls the workers. The only worker tries to
// read its next task.
model::Model pool_without_a_task() {
  model::Wait result = wait(100, WaitKind::kFutex, {{100, 0, -1, "futex"}});
  result.stack = python_lines({{"wait", "pool.py"}, {"get", "pool.py"}, {"apply", "pool.py"}});
  model::Wait task = wait(200, WaitKind::kPipeRead, {{100, 0, 4, "pipe"}}, "pipe:[7]");
  task.stack = python_lines({{"recv_bytes", "connection.py"}, {"get", "queues.py"}, {"worker", "pool.py"}});
  model::Model model = model_of(
      {dead_process(100, {result, wait(101, WaitKind::kPoll, {{200, 0, 5, "pipe"}})}), dead_process(200, {task})});
  model.processes[1].ppid = 100;
  return model;
}

TEST(LostTask, IsReportedIfAllWorkersWaitForTasksAndAThreadForAResult) {
  model::Model model = pool_without_a_task();
  model.processes[0].has_reaped = true;
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "lost-task");
  EXPECT_EQ(found.harm, Certainty::kProven);
  EXPECT_EQ(found.cause, Certainty::kLikely);
  EXPECT_EQ(found.processes.size(), 2U);
  // If no worker has ended, the pool may wait for another reason.
  model.processes[0].has_reaped = false;
  model::Process killed = dead_process(201, {});
  killed.ppid = 100;
  killed.exit_status = 9;
  killed.killed_by_run = true;
  model.processes.push_back(killed);
  const Finding doubtful = only_finding(model);
  EXPECT_EQ(doubtful.cause, Certainty::kPossible);
  EXPECT_NE(doubtful.summary.find("perhaps the worker that had the task has ended"), std::string::npos);
  // The task itself waits for an item of a queue. So the worker has this task.
  model.processes[1].waits[0].stack =
      python_lines({{"recv_bytes", "connection.py"}, {"get", "queues.py"}, {"work", "app.py"}, {"worker", "pool.py"}});
  EXPECT_EQ(only_finding(model).rule, "pipe-deadlock");
  // A worker that works on a task has this task, so no task is lost.
  model.processes[1].waits[0].stack = python_lines({{"read", "connection.py"}, {"worker", "pool.py"}});
  EXPECT_EQ(only_finding(model).rule, "pipe-deadlock");
}

// An idle worker was killed while it held the lock of the queue of tasks. No worker had a task.
TEST(LostTask, IsNotReportedIfAllWorkersWaitForTheLockOfTheQueue) {
  model::Model model = pool_without_a_task();
  model.processes[0].has_reaped = true;
  model::Wait lock = shared_semaphore(200, {{100, 0, -1, "shared memory"}, {200, 0, -1, "shared memory"}},
                                      model::SemaphoreUse::kUnknown);
  lock.stack = python_lines({{"__enter__", "synchronize.py"}, {"get", "queues.py"}, {"worker", "pool.py"}});
  model::Process reads = model.processes[1];
  model.processes[1].waits = {lock};
  const Finding found = only_finding(model);
  EXPECT_EQ(found.rule, "queue-lock-abandoned");
  EXPECT_EQ(found.cause, Certainty::kPossible);
  ASSERT_EQ(found.victims.size(), 1U) << "process 100 waits for the result";
  EXPECT_EQ(found.victims.front().pid, 100);
  // The other worker holds the lock and waits for a task.
  reads.pid = 201;
  model.processes.push_back(reads);
  EXPECT_EQ(only_finding(model).rule, "lost-task");
}

// A rule about forks reports this hang, so the rules about rings report nothing.
TEST(WaitCycles, AreSilentWhereAForkIsTheCause) {
  test::LockTrace scene({});
  scene.touch(trace::TouchKind::kLock);
  model::Model model = test::read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].waits = {futex(test::kChild, FutexUse::kMutex, {test::kChild, test::kChild, -1, "mutex"})};
  EXPECT_EQ(only_finding(model).rule, "orphaned-mutex");
}

}  // namespace
}  // namespace forksight
