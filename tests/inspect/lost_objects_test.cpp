// Tests of objects other than mutexes for which a forked child may wait in vain. Each scene has the object in the
// child's memory, and the lost thread in the parent. Exactly one rule must apply.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>

#include "diagnose/diagnose.hpp"
#include "forksight/trace/libc_calls.hpp"
#include "inspect/build_model.hpp"
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
using test::MadeProcess;
using test::Names;

struct Scene {
  // `worker` is the stack of the parent's worker, and `stuck` is the stack of the child's first thread. `worker_word`
  // and `stuck_word` are the addresses of the futex words on which these two threads wait.
  Scene(const Names& worker, std::uint64_t worker_word, const Names& stuck, std::uint64_t stuck_word)
      : parent(kParent, 1), child(kChild, kParent) {
    parent.add_thread_at(kMainPointer, kParent, {"wait4", "made_main"});
    parent.add_thread(kHolder, worker, worker_word);
    child.add_thread_at(kMainPointer, kChild, stuck, stuck_word);
  }

  void put(std::uint64_t address, const std::vector<std::uint8_t>& bytes) {
    parent.put(address, bytes);
    child.put(address, bytes);
  }

  model::Model model() const { return build_model(test::family(parent, child)); }

  MadeProcess parent;
  MadeProcess child;
};

std::vector<std::string> rules_of(const Scene& scene) {
  std::vector<std::string> rules;
  for (const Finding& finding : diagnose(scene.model())) rules.push_back(finding.rule);
  return rules;
}

using Rules = std::vector<std::string>;

const model::Held& only_held(const model::Model& model) {
  EXPECT_EQ(model.forks.size(), 1U);
  EXPECT_EQ(model.forks.at(0).held.size(), 1U);
  return model.forks.at(0).held.at(0);
}

TEST(LostObject, ARwlockNamesItsWriter) {
  Scene scene({"pause", "made_worker"}, 0, {"pthread_rwlock_rdlock", "made_main"}, kHeap + 0x100 + 8);
  scene.put(kHeap + 0x100, test::rwlock_memory(3, kHolder));
  const model::Model model = scene.model();
  EXPECT_EQ(model.threads[only_held(model).holder].tid, kHolder);
  EXPECT_EQ(model.locks[only_held(model).lock].kind, model::LockKind::kRwlockWrite);
  EXPECT_EQ(model.locks[only_held(model).lock].address, kHeap + 0x100);
  EXPECT_EQ(rules_of(scene), Rules{"orphaned-rwlock"});
}

TEST(LostObject, ARwlockDoesNotNameItsReaders) {
  Scene scene({"pause", "made_worker"}, 0, {"pthread_rwlock_wrlock", "made_main"}, kHeap + 0x100 + 12);
  scene.put(kHeap + 0x100, test::rwlock_memory(8, 0));
  const model::Model model = scene.model();
  EXPECT_EQ(model.threads[only_held(model).holder].tid, 0);
  EXPECT_EQ(model.locks[only_held(model).lock].kind, model::LockKind::kRwlockRead);
  EXPECT_EQ(rules_of(scene), Rules{"orphaned-rwlock"});
  EXPECT_EQ(diagnose(model).at(0).cause, Certainty::kPossible);
}

TEST(LostObject, ASemaphoreThatIsEmptyHasNoOwner) {
  const std::uint64_t semaphore = address_of("made_semaphore");
  Scene scene({"pause", "made_worker"}, 0, {"sem_wait", "made_main"}, semaphore);
  scene.put(semaphore, test::semaphore_memory(0));
  EXPECT_EQ(rules_of(scene), Rules{"orphaned-semaphore"});
  EXPECT_EQ(scene.model().locks.at(0).name, "made_semaphore");
  const Finding finding = diagnose(scene.model()).at(0);
  EXPECT_EQ(finding.harm, Certainty::kProven);
  EXPECT_EQ(finding.cause, Certainty::kPossible) << "threads may use the semaphore as a signal, not as a lock";
  EXPECT_EQ(finding.summary.find("held it"), std::string::npos) << finding.summary;
}

// If the parent never had a second thread, the fork lost no thread.
TEST(LostObject, WithoutAnOwnerIsReportedOnlyIfTheForkLostAThread) {
  const std::uint64_t semaphore = address_of("made_semaphore");
  Scene scene({"pause", "made_worker"}, 0, {"sem_wait", "made_main"}, semaphore);
  scene.put(semaphore, test::semaphore_memory(0));
  scene.parent.image.threads.pop_back();
  EXPECT_EQ(rules_of(scene), Rules{});
  Scene reader({"pause", "made_worker"}, 0, {"pthread_rwlock_wrlock", "made_main"}, kHeap + 0x100 + 12);
  reader.put(kHeap + 0x100, test::rwlock_memory(8, 0));
  reader.parent.image.threads.pop_back();
  EXPECT_TRUE(reader.model().forks.at(0).held.empty());
}

// Daemons wait for a semaphore that the handler of SIGTERM posts.
TEST(LostObject, ASemaphoreThatAHandlerMayPostIsNoFinding) {
  const std::uint64_t semaphore = address_of("made_semaphore");
  Scene scene({"pause", "made_worker"}, 0, {"sem_wait", "made_main"}, semaphore);
  scene.put(semaphore, test::semaphore_memory(0));
  auto subjects = test::family(scene.parent, scene.child);
  subjects[1].liveness = model::Liveness::kDeadButForSignal;
  EXPECT_TRUE(diagnose(build_model(subjects)).empty());
}

TEST(LostObject, AConditionCountsItsLostWaiters) {
  const std::uint64_t condition = kHeap + 0x100;
  Scene scene({"pthread_cond_wait", "made_worker"}, condition + 40, {"pthread_cond_destroy", "made_main"},
              condition + 36);
  scene.put(condition, test::condition_memory(1));
  const model::Model model = scene.model();
  EXPECT_EQ(only_held(model).waiters, 1U);
  EXPECT_EQ(model.threads[only_held(model).holder].tid, kHolder);
  EXPECT_TRUE(only_held(model).holder_now.known());
  EXPECT_EQ(model.touches.at(0).operation, model::SyncOperation::kDestroy);
  EXPECT_EQ(rules_of(scene), Rules{"orphaned-condvar"});
}

TEST(LostObject, AWaiterThatIsAThreadOfTheChildIsNotLost) {
  const std::uint64_t condition = kHeap + 0x100;
  Scene scene({"pause", "made_worker"}, 0, {"pthread_cond_destroy", "made_main"}, condition + 36);
  scene.child.add_thread(kChild + 1, {"pthread_cond_wait", "made_worker"}, condition + 40);
  scene.put(condition, test::condition_memory(1));
  EXPECT_TRUE(scene.model().forks.at(0).held.empty());
}

TEST(LostObject, ABarrierCountsItsLostArrivals) {
  const std::uint64_t barrier = kHeap + 0x100;
  Scene scene({"pthread_barrier_wait", "made_worker"}, barrier + 4, {"pthread_barrier_wait", "made_main"}, barrier + 4);
  scene.put(barrier, test::barrier_memory(1, 0));
  scene.child.put(barrier, test::barrier_memory(2, 0));  // the child has arrived, too
  const model::Model model = scene.model();
  EXPECT_EQ(only_held(model).waiters, 1U);
  EXPECT_EQ(model.threads[only_held(model).holder].tid, kHolder);
  EXPECT_EQ(rules_of(scene), Rules{"orphaned-barrier"});
}

TEST(LostObject, AGuardIsHeldByTheThreadInsideTheSameFunction) {
  const std::uint64_t guard = address_of("made_guard");
  Scene scene({"pause", "made_fill_cache", "made_worker"}, 0,
              {"syscall", "__cxa_guard_acquire", "made_fill_cache", "made_main"}, guard);
  scene.put(guard, test::guard_memory(0x100));
  const model::Model model = scene.model();
  EXPECT_EQ(model.threads[only_held(model).holder].tid, kHolder);
  EXPECT_EQ(model.locks[only_held(model).lock].kind, model::LockKind::kGuard);
  EXPECT_EQ(rules_of(scene), Rules{"interrupted-static-init"});
}

// If two threads are inside the function, or none is, it is not known which thread initialises the static variable. A
// thread of the child may also be the one that initialises the variable.
TEST(LostObject, AGuardWithoutAKnownInitialiserIsLikely) {
  const std::uint64_t guard = address_of("made_guard");
  const Names waits = {"syscall", "__cxa_guard_acquire", "made_fill_cache", "made_worker"};
  Scene scene({"pause", "made_fill_cache", "made_worker"}, 0,
              {"syscall", "__cxa_guard_acquire", "made_fill_cache", "made_main"}, guard);
  scene.parent.add_thread(kHolder + 1, waits, guard);
  scene.put(guard, test::guard_memory(0x10100));
  EXPECT_EQ(scene.model().threads[only_held(scene.model()).holder].tid, kHolder) << "a waiting thread holds no guard";
  EXPECT_EQ(diagnose(scene.model()).at(0).harm, Certainty::kProven);

  scene.parent.add_thread(kHolder + 2, {"pause", "made_fill_cache", "made_worker"});
  EXPECT_EQ(scene.model().threads[only_held(scene.model()).holder].tid, 0);
  EXPECT_FALSE(only_held(scene.model()).holder_now.known());
  ASSERT_EQ(rules_of(scene), Rules{"interrupted-static-init"});
  EXPECT_EQ(diagnose(scene.model()).at(0).harm, Certainty::kProven);
  EXPECT_EQ(diagnose(scene.model()).at(0).cause, Certainty::kLikely);
}

TEST(LostObject, AGuardIsNotLostIfAThreadOfTheChildInitialisesIt) {
  const std::uint64_t guard = address_of("made_guard");
  Scene scene({"pause", "made_fill_cache", "made_worker"}, 0,
              {"syscall", "__cxa_guard_acquire", "made_fill_cache", "made_main"}, guard);
  scene.child.add_thread(kChild + 1, {"pause", "made_fill_cache", "made_worker"});
  scene.put(guard, test::guard_memory(0x10100));
  EXPECT_TRUE(scene.model().forks.at(0).held.empty());
}

TEST(LostObject, AGuardIsNotLostIfTheWaitingThreadInitialisesIt) {
  const std::uint64_t guard = address_of("made_guard");
  Scene scene({"pause", "made_worker"}, 0,
              {"syscall", "__cxa_guard_acquire", "made_fill_cache", "made_fill_cache", "made_main"}, guard);
  scene.put(guard, test::guard_memory(0x10100));
  EXPECT_TRUE(scene.model().forks.at(0).held.empty());
}

TEST(LostObject, AGuardWhoseInitialisationIsDoneIsNotLost) {
  const std::uint64_t guard = address_of("made_guard");
  Scene scene({"pause", "made_worker"}, 0, {"syscall", "__cxa_guard_acquire", "made_fill_cache", "made_main"}, guard);
  scene.put(guard, test::guard_memory(1));
  EXPECT_TRUE(scene.model().forks.at(0).held.empty());
}

TEST(LostObject, ALockOfLibcIsHeldByTheThreadInAFunctionThatTakesIt) {
  Scene scene({"read", "localtime_r", "made_fill_cache", "made_worker"}, 0,
              {"localtime_r", "made_drain_cache", "made_main"}, kHeap + 0x100);
  scene.child.image.threads.at(0).call->args[2] = 2;
  const model::Model model = scene.model();
  const model::Fork& fork = model.forks.at(0);
  ASSERT_EQ(fork.calls.size(), 1U);
  EXPECT_EQ(model.threads[fork.calls[0].thread].tid, kHolder);
  EXPECT_EQ(fork.calls[0].call.function, "localtime_r");
  ASSERT_TRUE(fork.calls[0].called_at.known());
  EXPECT_EQ(fork.calls[0].called_at.frames.front().function, "made_fill_cache");
  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_EQ(model.touches[0].kind, model::TouchKind::kLibcCall);
  EXPECT_EQ(model.touches[0].stack.frames.front().function, "made_drain_cache");
  EXPECT_EQ(rules_of(scene), Rules{"libc-lock-in-flight"});
}

TEST(LostObject, ALockOfLibcIsNotHeldByAThreadThatWaitsForIt) {
  const Names waits = {"localtime_r", "made_fill_cache", "made_worker"};
  const std::uint64_t lock = kHeap + 0x100;
  Scene scene({"read", "localtime_r", "made_fill_cache", "made_worker"}, 0,
              {"localtime_r", "made_drain_cache", "made_main"}, lock);
  scene.parent.add_thread(kHolder + 1, waits, lock);
  model::Model model = scene.model();
  EXPECT_EQ(model.threads[model.forks.at(0).calls.at(0).thread].tid, kHolder);
  EXPECT_EQ(diagnose(model).at(0).harm, Certainty::kProven);
  EXPECT_NE(diagnose(model).at(0).summary.find("of its parent is inside of localtime_r"), std::string::npos);

  // A second thread of the parent is inside of a function with the same lock, so it is not known which thread holds it.
  scene.parent.add_thread(kHolder + 2, {"read", "mktime", "made_fill_cache", "made_worker"});
  model = scene.model();
  EXPECT_EQ(model.threads[model.forks.at(0).calls.at(0).thread].tid, 0);
  EXPECT_EQ(rules_of(scene), Rules{"libc-lock-in-flight"});
  EXPECT_EQ(diagnose(model).at(0).cause, Certainty::kLikely);

  // A thread of the child itself is inside of such a function, and may hold the lock.
  scene.child.add_thread(kChild + 1, {"read", "mktime", "made_fill_cache", "made_worker"});
  EXPECT_EQ(rules_of(scene), Rules{});
}

TEST(LostObject, AStreamsLockProvesThatForkWasNotCalled) {
  const std::uint64_t stream = address_of("_IO_stdfile_1_lock");
  Scene scene({"pause", "made_worker"}, 0, {"puts", "made_main"}, stream);
  scene.parent.image.threads.at(1).fs_base = kHeap + 0x9'0000;
  std::vector<std::uint8_t> lock(16);
  const auto owner = std::bit_cast<std::array<std::uint8_t, 8>>(kHeap + 0x9'0000);
  lock[0] = 2;
  lock[4] = 1;
  std::ranges::copy(owner, lock.begin() + 8);
  scene.put(stream, lock);
  const model::Model model = scene.model();
  ASSERT_EQ(model.forks.at(0).streams.size(), 1U);
  EXPECT_TRUE(model.forks.at(0).bypassed);
  EXPECT_EQ(model.forks.at(0).streams[0].number, 1);
  EXPECT_EQ(model.threads[model.forks.at(0).streams[0].thread].tid, kHolder);
  EXPECT_EQ(rules_of(scene), Rules{"atfork-bypassed"});
}

TEST(LostObject, APoolOfLibgompLosesItsWorkers) {
  Scene scene({"GOMP_parallel", "made_worker"}, kHeap + 0x100, {"GOMP_parallel", "made_fill_cache", "made_main"},
              kHeap + 0x100);
  // A worker of libgomp was started by libgomp, so the outermost frame of its stack is a function of libgomp.
  scene.parent.image.threads.pop_back();
  scene.parent.add_thread(kHolder, {"omp_get_wtime"}, kHeap + 0x100);
  const model::Model model = scene.model();
  ASSERT_EQ(model.pools.size(), 1U);
  EXPECT_EQ(model.pools[0].workers_lost, 1U);
  EXPECT_FALSE(model.pools[0].in_region);
  EXPECT_EQ(model.pools[0].library, test::path_of("libgomp"));
  EXPECT_EQ(rules_of(scene), Rules{"lost-openmp-pool"});
}

TEST(StuckHandler, OfTheParentIsAPrepareHandler) {
  const std::uint64_t mutex = address_of("made_mutex");
  MadeProcess process(kParent, 1);
  process.add_thread(kParent, {"pthread_mutex_lock", "made_handler", "fork", "made_main"}, mutex);
  process.add_thread(kHolder, {"pthread_join", "made_worker"}, kHeap + 0x500);
  process.put(mutex, test::mutex_memory(0, kHolder));
  std::vector<Subject> subjects(1);
  subjects[0].image = process.image;
  subjects[0].is_forked = false;
  subjects[0].liveness = model::Liveness::kDead;
  subjects[0].stuck_for_ms = 1000;
  subjects[0].waits = test::waits_of(process.image);
  const model::Model model = build_model(subjects);
  ASSERT_EQ(model.handler_runs.size(), 1U);
  const model::HandlerRun& run = model.handler_runs[0];
  EXPECT_EQ(run.phase, model::HandlerPhase::kPrepare);
  EXPECT_EQ(run.fork_stack.frames.at(0).function, "made_main");
  EXPECT_EQ(model.handlers.at(0).functions[0], "made_handler");
  ASSERT_EQ(run.waits.size(), 1U);
  EXPECT_EQ(run.waits[0].object, mutex);
  ASSERT_TRUE(run.waits[0].owner);
  EXPECT_EQ(model.threads[*run.waits[0].owner].tid, kHolder);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-handler-stuck");
}

TEST(StuckHandler, OfTheChildIsAChildHandler) {
  const std::uint64_t mutex = address_of("made_mutex");
  Scene scene({"pause", "made_worker"}, 0, {"pthread_mutex_lock", "made_handler", "fork", "made_main"}, mutex);
  scene.put(mutex, test::mutex_memory(0, kHolder));
  const model::Model model = scene.model();
  ASSERT_EQ(model.handler_runs.size(), 1U);
  EXPECT_EQ(model.handler_runs[0].phase, model::HandlerPhase::kChild);
  EXPECT_EQ(rules_of(scene), Rules{"atfork-child-stuck"});
}

TEST(LostThread, IsBlamedForAFutexWaitOfUnknownKind) {
  Scene scene({"pause", "made_worker"}, 0, {"syscall", "made_main"}, kHeap + 0x100);
  const model::Model model = scene.model();
  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_EQ(model.touches[0].kind, model::TouchKind::kFutexWait);
  EXPECT_EQ(model.touches[0].object, kHeap + 0x100);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].rule == "lost-wakeup" || findings[0].rule == "lost-thread-pool") << findings[0].rule;
}

TEST(LostThread, IsNotBlamedIfTheParentHadNoOtherThread) {
  Scene scene({"pause", "made_worker"}, 0, {"syscall", "made_main"}, kHeap + 0x100);
  scene.parent.image.threads.pop_back();
  EXPECT_EQ(rules_of(scene), Rules{});
}

}  // namespace
}  // namespace forksight::inspect
