// The processes of these tests are made up. The analyzer infers from their memory which threads and locks a fork lost.
// In most tests exactly one rule applies.
#include "inspect/build_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/diagnose.hpp"
#include "inspect/pthreads.hpp"
#include "made_process.hpp"
#include "support/scenes.hpp"

namespace forksight::inspect {
namespace {

using test::address_of;
using test::kChild;
using test::kHeap;
using test::kHolder;
using test::kMainPointer;
using test::kParent;
using test::kSharedHeap;
using test::MadeProcess;

constexpr int kShared = 0x80;
constexpr std::uint64_t kWorkerPointer = kHeap + 0x8'1000;

// A parent with a worker thread, and a forked child that waits for a mutex. The mutex is in the memory of both
// processes.
struct MutexScene {
  explicit MutexScene(std::int32_t owner = kHolder, std::uint64_t address = address_of("made_mutex"),
                      std::uint32_t kind = 0)
      : parent(kParent, 1), child(kChild, kParent), mutex(address) {
    parent.add_thread_at(kMainPointer, kParent, {"wait4", "made_main"});
    parent.add_thread_at(kWorkerPointer, kHolder, {"pause", "made_fill_cache", "made_worker"});
    child.add_thread_at(kMainPointer, kChild, {"pthread_mutex_lock", "made_drain_cache", "made_main"}, mutex);
    // fork() copied the struct of the parent's worker, too.
    child.put_word(kWorkerPointer + 0x2d0, kHolder);
    for (MadeProcess* process : {&parent, &child}) process->put(mutex, test::mutex_memory(kind, owner));
  }

  std::vector<Subject> subjects() const { return test::family(parent, child); }
  model::Model model() const { return build_model(subjects()); }

  MadeProcess parent;
  MadeProcess child;
  std::uint64_t mutex;
};

std::vector<std::string> rules_of(const model::Model& model) {
  std::vector<std::string> rules;
  for (const Finding& finding : diagnose(model)) rules.push_back(finding.rule);
  return rules;
}

using Rules = std::vector<std::string>;

TEST(Orphan, IsHeldByAThreadOfTheParent) {
  const MutexScene scene;
  const model::Model model = scene.model();
  ASSERT_EQ(model.forks.size(), 1U);
  const model::Fork& fork = model.forks.front();
  EXPECT_TRUE(fork.is_inferred);
  EXPECT_EQ(model.threads[fork.forking_thread].tid, kParent);
  ASSERT_EQ(fork.lost_threads.size(), 1U);
  EXPECT_EQ(model.threads[fork.lost_threads.front()].tid, kHolder);
  ASSERT_EQ(fork.held.size(), 1U);
  const model::Held& held = fork.held.front();
  EXPECT_EQ(model.threads[held.holder].tid, kHolder);
  EXPECT_EQ(model.threads[held.holder].process, 0U);
  EXPECT_FALSE(held.by_forking_thread);
  EXPECT_EQ(model.locks[held.lock].name, "made_mutex");
  EXPECT_EQ(model.locks[held.lock].address, scene.mutex);
  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_EQ(model.touches.front().tid, kChild);
  EXPECT_EQ(model.touches.front().kind, model::TouchKind::kLock);
  EXPECT_TRUE(model.touches.front().by_owner);
  ASSERT_TRUE(model.touches.front().stack.known());
  EXPECT_EQ(model.touches.front().stack.frames.front().function, "made_drain_cache");
}

TEST(Orphan, IsOneFindingWithItsHolderAndItsVictim) {
  const auto findings = diagnose(MutexScene().model());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  ASSERT_TRUE(findings[0].culprit.holder);
  EXPECT_EQ(findings[0].culprit.holder->tid, kHolder);
  EXPECT_EQ(findings[0].victims.size(), 1U);
}

TEST(Orphan, ShowsWhereItsHolderIsNowWhileTheParentsMutexNamesIt) {
  const MutexScene scene;
  const model::Model holds = scene.model();
  ASSERT_TRUE(holds.forks.front().held.front().holder_now.known());
  EXPECT_EQ(holds.forks.front().held.front().holder_now.frames[1].function, "made_fill_cache");

  MutexScene let_go;
  let_go.parent.put(let_go.mutex, test::mutex_memory(0, 0, 0));
  EXPECT_FALSE(let_go.model().forks.front().held.front().holder_now.known());
  EXPECT_EQ(rules_of(let_go.model()), Rules{"orphaned-mutex"});

  MutexScene taken_by_another;
  taken_by_another.parent.put(taken_by_another.mutex, test::mutex_memory(0, kParent));
  EXPECT_FALSE(taken_by_another.model().forks.front().held.front().holder_now.known());
  EXPECT_EQ(rules_of(taken_by_another.model()), Rules{"orphaned-mutex"});
}

TEST(Orphan, ItsHolderMayHaveEndedSince) {
  MutexScene scene;
  scene.parent.image.threads.pop_back();
  scene.child.put_pthread(0);
  const model::Model model = scene.model();
  ASSERT_EQ(model.forks.front().held.size(), 1U);
  const model::Held& held = model.forks.front().held.front();
  EXPECT_EQ(model.threads[held.holder].tid, kHolder);
  EXPECT_FALSE(held.holder_now.known());
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].cause, Certainty::kProven);
}

// If no thread was lost, the thread whose id the lock records has ended while it held the lock.
TEST(Orphan, HasAnOwnerThatEndedIfNoThreadWasLost) {
  MutexScene scene;
  scene.parent.image.threads.pop_back();
  const auto findings = diagnose(scene.model());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
  EXPECT_NE(findings[0].summary.find("ended without releasing it"), std::string::npos) << findings[0].summary;
}

// The recorded owner may be a thread of an ancestor that cannot be examined. The waiting thread may be a copy of that
// thread. In this case the waiting thread holds the lock itself.
TEST(Orphan, IsNoneIfItsOwnerMayBeAnAncestorsThread) {
  const MutexScene own(kParent - 1);
  ASSERT_EQ(own.model().forks.front().held.size(), 1U);
  EXPECT_TRUE(own.model().forks.front().held.front().may_be_own);
  const auto findings = diagnose(own.model());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].cause, Certainty::kPossible);
  EXPECT_EQ(findings[0].summary.find("held it"), std::string::npos) << findings[0].summary;

  MutexScene lost_none(kParent - 1);
  lost_none.parent.image.threads.pop_back();
  EXPECT_TRUE(lost_none.model().forks.front().held.empty());
  EXPECT_EQ(rules_of(lost_none.model()), Rules{});
}

// Fills in the facts that an examination from outside finds about the futex wait for the mutex.
void name_owner(Subject& subject, std::int32_t owner, std::size_t at = 0) {
  model::Wait& wait = subject.waits.at(at);
  wait.use = model::FutexUse::kMutex;
  wait.owner = owner;
  wait.owner_is_gone = true;
  wait.is_stuck = true;
  wait.mutex_type = model::MutexType::kNormal;
}

TEST(Inherited, APlainMutexIsTheFirstThreadsOwn) {
  const MutexScene scene(kParent);
  auto subjects = scene.subjects();
  name_owner(subjects[1], kParent);
  const model::Model model = build_model(subjects);
  EXPECT_TRUE(model.forks.front().held.empty());
  EXPECT_TRUE(model.processes[1].waits.front().is_inherited);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "self-deadlock");
  EXPECT_EQ(findings[0].cause, Certainty::kProven);
  EXPECT_NE(findings[0].summary.find("since before its fork"), std::string::npos) << findings[0].summary;
}

// The first thread is alive and may unlock the mutex. It does not, because it waits itself.
TEST(Inherited, AnotherThreadOfTheChildWaitsForTheFirst) {
  MutexScene scene(kParent);
  scene.child.image.threads.clear();
  scene.child.add_thread_at(kMainPointer, kChild, {"pthread_join", "made_main"}, kHeap + 0x400);
  scene.child.add_thread(kChild + 1, {"pthread_mutex_lock", "made_worker"}, scene.mutex);
  auto subjects = scene.subjects();
  name_owner(subjects[1], kParent, 1);
  model::Wait& join = subjects[1].waits.front();
  join.use = model::FutexUse::kJoin;
  join.owner = kChild + 1;
  join.is_stuck = true;
  join.wakers = {{kChild, kChild + 1, -1, "join"}};
  EXPECT_EQ(rules_of(build_model(subjects)), Rules{"join-cycle"});
}

// A grandchild waits for a mutex that its grandparent's first thread took. The grandchild's first thread is a copy of
// the copy of that thread.
struct Generations : MutexScene {
  explicit Generations(std::uint32_t kind)
      : MutexScene(kParent, address_of("made_mutex"), kind), grandchild(3000, kChild) {
    child.image.threads.clear();
    child.add_thread_at(kMainPointer, kChild, {"wait4", "made_main"});
    grandchild.add_thread_at(kMainPointer, 3000, {"pthread_mutex_lock", "made_main"}, mutex);
    grandchild.put(mutex, test::mutex_memory(kind, kParent));
  }
  std::vector<Subject> three(std::int32_t owner) const {
    auto all = subjects();
    all.push_back(test::family(child, grandchild)[1]);
    all[1].liveness = model::Liveness::kVictim;
    all[1].waits_for = 2;
    all[2].parent = 1;
    name_owner(all[2], owner);
    return all;
  }
  MadeProcess grandchild;
};

TEST(Inherited, AcrossTwoForks) {
  EXPECT_EQ(rules_of(build_model(Generations(0).three(kParent))), Rules{"self-deadlock"});
  constexpr std::uint32_t kErrorcheck = 2;
  EXPECT_EQ(rules_of(build_model(Generations(kErrorcheck).three(kParent))), Rules{"self-held-lock"});
}

// If a process was not stopped, the thread pointer of its first thread is not known. Then it is not certain that the
// process was forked by the first thread of its parent.
TEST(Inherited, AcrossAGenerationThatWasNotStopped) {
  constexpr std::uint32_t kErrorcheck = 2;
  const Generations scene(kErrorcheck);
  auto all = scene.three(kParent);
  all[1].liveness = model::Liveness::kAwake;
  all[1].image.threads[0].fs_base = 0;
  const auto findings = diagnose(build_model(all));
  for (const Finding& finding : findings) EXPECT_NE(finding.cause, Certainty::kProven) << finding.summary;
  find_pointer_by_child(all[1].image, all[2].image);
  EXPECT_EQ(all[1].image.threads[0].fs_base, kMainPointer);
  EXPECT_EQ(rules_of(build_model(all)), Rules{"self-held-lock"});
}

TEST(Inherited, AThreadThatTheFirstForkLeftBehindIsLost) {
  Generations scene(0);
  for (MadeProcess* process : {&scene.parent, &scene.child, &scene.grandchild})
    process->put(scene.mutex, test::mutex_memory(0, kHolder));
  const model::Model model = build_model(scene.three(kHolder));
  EXPECT_EQ(rules_of(model), Rules{"orphaned-mutex"});
  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_EQ(model.forks[model.touches[0].fork].process, 0U) << "the fork that lost the thread is to blame";
}

// Another thread of the child holds the lock, so the fork is not the cause.
TEST(Orphan, IsNoneIfAThreadOfTheChildHoldsIt) {
  MutexScene scene(kChild + 1);
  scene.child.add_thread(kChild + 1, {"pause", "made_worker"});
  auto subjects = scene.subjects();
  const model::Model model = build_model(subjects);
  EXPECT_TRUE(model.forks.front().held.empty());
  EXPECT_EQ(rules_of(model), Rules{});
}

// Two threads of the child wait for each other: each holds the lock that the other one wants.
TEST(Orphan, IsNoneIfThreadsOfTheChildDeadlock) {
  MutexScene scene(kChild + 1);
  scene.child.add_thread(kChild + 1, {"pthread_mutex_lock", "made_worker"}, kHeap + 0x100);
  scene.child.put(kHeap + 0x100, test::mutex_memory(0, kChild));
  const model::Model model = scene.model();
  EXPECT_TRUE(model.forks.front().held.empty());
  EXPECT_EQ(rules_of(model), Rules{});
}

TEST(Orphan, IsNoneIfTheLockIsSharedBetweenProcesses) {
  EXPECT_TRUE(MutexScene(kHolder, kHeap + 0x100, kShared).model().forks.front().held.empty());
  EXPECT_TRUE(MutexScene(kHolder, kSharedHeap + 0x100).model().forks.front().held.empty());
}

TEST(Orphan, IsSelfHeldIfTheForkingThreadHeldIt) {
  constexpr int kRecursive = 1;
  const MutexScene scene(kParent, address_of("made_mutex"), kRecursive);
  const model::Model model = scene.model();
  ASSERT_EQ(model.forks.front().held.size(), 1U);
  EXPECT_TRUE(model.forks.front().held.front().by_forking_thread);
  EXPECT_EQ(rules_of(model), Rules{"self-held-lock"});
}

// The worker forked, not the first thread.
TEST(InferredFork, IsByTheThreadWhoseStructTheChildHas) {
  MutexScene scene(kParent);
  scene.child.image.threads.clear();
  scene.child.add_thread_at(kWorkerPointer, kChild, {"pthread_mutex_lock", "made_worker"}, scene.mutex);
  const model::Model model = scene.model();
  const model::Fork& fork = model.forks.front();
  EXPECT_EQ(model.threads[fork.forking_thread].tid, kHolder);
  ASSERT_EQ(fork.lost_threads.size(), 1U);
  EXPECT_EQ(model.threads[fork.lost_threads.front()].tid, kParent);
  EXPECT_FALSE(fork.held.front().by_forking_thread);
  EXPECT_EQ(rules_of(model), Rules{"orphaned-mutex"});
}

TEST(InferredFork, LosesNoThreadThatIsYoungerThanTheChild) {
  MutexScene scene;
  scene.child.image.start_ticks = 5000;
  scene.parent.image.threads[0].start_ticks = 4000;
  const auto lost = [&](std::uint64_t start, std::int32_t tid) {
    scene.parent.image.threads[1].start_ticks = start;
    scene.parent.image.threads[1].tid = tid;
    return scene.model().forks.front().lost_threads.size();
  };
  EXPECT_EQ(lost(4999, kHolder), 1U);
  EXPECT_EQ(lost(5001, kHolder), 0U);
  // If the thread and the child started within one clock tick, the thread ids show which of them started first.
  EXPECT_EQ(lost(5000, kHolder), 1U);
  EXPECT_EQ(lost(5000, kChild + 1), 0U);
  EXPECT_EQ(lost(0, kChild + 1), 1U);
  scene.parent.image.threads[1].has_ended = true;
  EXPECT_EQ(lost(4999, kHolder), 0U);
}

TEST(InferredFork, IsNotInferredIfTheChildCalledExec) {
  const MutexScene scene;
  auto subjects = scene.subjects();
  subjects[1].is_forked = false;
  const model::Model model = build_model(subjects);
  EXPECT_TRUE(std::ranges::none_of(model.forks, [](const model::Fork& fork) { return fork.child.has_value(); }));
  EXPECT_TRUE(model.touches.empty());
}

TEST(InferredFork, IsNotInferredForAnotherProgramOrWithoutAParent) {
  const MutexScene scene;
  auto subjects = scene.subjects();
  subjects[1].is_forked.reset();
  subjects[1].image.exe = "/usr/bin/other";
  EXPECT_TRUE(build_model(subjects).forks.empty());
  subjects = scene.subjects();
  subjects[1].parent.reset();
  EXPECT_TRUE(build_model(subjects).forks.empty());
}

TEST(InferredFork, CausesNoFindingIfTheChildDoesNotHang) {
  const MutexScene scene;
  auto subjects = scene.subjects();
  subjects[1].liveness = model::Liveness::kAwake;
  subjects[1].waits.clear();
  subjects[0].liveness = model::Liveness::kAwake;
  subjects[0].waits_for.reset();
  EXPECT_EQ(rules_of(build_model(subjects)), Rules{});
}

// A forked worker process has idle threads, and a child of this worker process hangs. The only finding is about that
// child.
TEST(InferredFork, CausesNoFindingAboutAnAwakeProcessWhoseChildHangs) {
  MutexScene scene;
  const std::uint64_t semaphore = kHeap + 0x200;
  scene.child.add_thread(kChild + 1, {"sem_wait", "made_worker"}, semaphore);
  scene.child.put(semaphore, test::semaphore_memory(0));
  MadeProcess grandchild(3000, kChild);
  grandchild.add_thread_at(kMainPointer, 3000, {"pthread_mutex_lock", "made_main"}, kHeap + 0x100);
  grandchild.put(kHeap + 0x100, test::mutex_memory(0, kChild + 1));
  auto subjects = scene.subjects();
  subjects[0].liveness = subjects[1].liveness = model::Liveness::kAwake;
  subjects[0].waits_for.reset();
  subjects[1].stuck_for_ms = 0;
  subjects.push_back({});
  subjects[2].image = grandchild.image;
  subjects[2].parent = 1;
  subjects[2].is_forked = true;
  subjects[2].liveness = model::Liveness::kDead;
  subjects[2].stuck_for_ms = 1000;
  subjects[2].waits = test::waits_of(grandchild.image);
  const model::Model model = build_model(subjects);
  EXPECT_TRUE(std::ranges::all_of(model.touches, [](const model::Touch& touch) { return touch.process == 2; }));
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
  EXPECT_EQ(findings[0].process, 2U);
}

// The child started workers, which are idle while its first thread hangs. The idle workers are not the cause.
TEST(Orphan, IsBlamedAndNotTheIdleWorkers) {
  MutexScene scene;
  const std::uint64_t semaphore = kHeap + 0x200;
  const std::uint64_t condition = kHeap + 0x300;
  scene.child.add_thread(kChild + 1, {"sem_wait", "made_worker"}, semaphore);
  scene.child.add_thread(kChild + 2, {"pthread_cond_wait", "made_worker"}, condition + 40);
  scene.child.put(semaphore, test::semaphore_memory(0));
  scene.child.put(condition, test::condition_memory(1));
  EXPECT_EQ(rules_of(scene.model()), Rules{"orphaned-mutex"});
}

TEST(Orphan, IsReportedOnceIfSeveralThreadsOfOneChildWaitForIt) {
  MutexScene scene;
  scene.child.add_thread(kChild + 1, {"pthread_mutex_lock", "made_worker"}, scene.mutex);
  scene.child.add_thread(kChild + 2, {"pthread_mutex_lock", "made_fill_cache", "made_worker"}, scene.mutex);
  const auto findings = diagnose(scene.model());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].tid, kChild);
  // A second orphan gets a touch of its own.
  scene.child.add_thread(kChild + 3, {"pthread_mutex_lock", "made_worker"}, kHeap + 0x100);
  scene.child.put(kHeap + 0x100, test::mutex_memory(0, kHolder));
  EXPECT_EQ(scene.model().touches.size(), 2U);
}

// The kernel lists the first thread of a process, even after it has ended, until the last thread has ended.
TEST(EndedOwner, MayBeTheFirstThread) {
  MadeProcess process(kParent, 1);
  const std::uint64_t mutex = address_of("made_mutex");
  process.add_thread(kParent, {});
  process.image.threads[0].has_ended = true;
  process.add_thread(kHolder, {"pthread_mutex_lock", "made_worker"}, mutex);
  process.put(mutex, test::mutex_memory(0, kParent));
  std::vector<Subject> subjects(1);
  subjects[0].image = process.image;
  subjects[0].is_forked = false;
  subjects[0].liveness = model::Liveness::kDead;
  subjects[0].waits = test::waits_of(process.image);
  const auto findings = diagnose(build_model(subjects));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
  EXPECT_EQ(findings[0].culprit.holder->tid, kParent);
}

TEST(EndedOwner, IsReportedForAProcessThatIsNoFork) {
  MadeProcess process(kParent, 1);
  const std::uint64_t mutex = address_of("made_mutex");
  process.add_thread(kParent, {"pthread_mutex_lock", "made_main"}, mutex);
  process.put(mutex, test::mutex_memory(0, kHolder));
  std::vector<Subject> subjects(1);
  subjects[0].image = process.image;
  subjects[0].is_forked = false;
  subjects[0].liveness = model::Liveness::kDead;
  subjects[0].stuck_for_ms = 1000;
  subjects[0].waits = test::waits_of(process.image);
  const auto findings = diagnose(build_model(subjects));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
  EXPECT_EQ(findings[0].culprit.holder->tid, kHolder);

  // There is no finding in these three cases. In the first case the waiting thread itself holds the mutex. In the
  // second case no thread holds the mutex. In the third case a thread of another process may hold the mutex.
  process.put(mutex, test::mutex_memory(0, kParent));
  EXPECT_EQ(rules_of(build_model(subjects)), Rules{});
  process.put(mutex, test::mutex_memory(0, 0, 0));
  EXPECT_EQ(rules_of(build_model(subjects)), Rules{});
  process.put(mutex, test::mutex_memory(kShared, kHolder));
  EXPECT_EQ(rules_of(build_model(subjects)), Rules{});
}

}  // namespace
}  // namespace forksight::inspect
