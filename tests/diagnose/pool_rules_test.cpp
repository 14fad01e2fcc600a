// Tests the rules about children that wait for a thread pool. The fork did not copy the threads of the pool.
#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using model::Owner;
using model::PoolState;
using test::LockTrace;
using test::PoolTrace;
using test::read_model;

// A dead child. Its parent had one thread pool for each given owner, and no other threads.
model::Model dead_child(std::initializer_list<std::pair<Owner, std::size_t>> pools) {
  LockTrace scene({});
  model::Model model = read_model(scene.trace);
  model::Fork& fork = model.forks[0];
  fork.lost_threads.clear();
  fork.thread_pools.clear();
  for (const auto& [owner, size] : pools) {
    model::ThreadPool pool;
    pool.owner = owner;
    pool.library = "/usr/lib/libpool.so";
    for (std::size_t i = 0; i < size; ++i) {
      model::Thread thread;
      thread.tid = static_cast<std::int32_t>(3000 + model.threads.size());
      thread.owner = owner;
      thread.created_at = test::make_stack({"start app.c:7", "main app.c:20"});
      pool.threads.push_back(model.threads.size());
      fork.lost_threads.push_back(model.threads.size());
      model.threads.push_back(thread);
    }
    pool.before = static_cast<std::uint32_t>(size);
    fork.thread_pools.push_back(std::move(pool));
  }
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  return model;
}

std::string only_rule(const model::Model& model) {
  const auto findings = diagnose(model);
  return findings.size() == 1 ? findings[0].rule : std::to_string(findings.size()) + " findings";
}

TEST(LostThreadPool, NamesTheOnlyPool) {
  model::Model model = dead_child({{Owner::kFftw, 2}});
  model.forks[0].stack = test::make_stack({"main app.c:30"});
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lost-thread-pool");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].culprit.name, "FFTW pool of 2 threads");
  EXPECT_EQ(findings[0].culprit.holder->owner, "fftw");
  EXPECT_EQ(
      findings[0].summary,
      "child 2000 hangs waiting for its FFTW pool of 2 threads, made at app.c:7, which fork() at app.c:30 did not "
      "copy");
  ASSERT_GE(findings[0].fixes.size(), 2U);
  EXPECT_NE(findings[0].fixes[1].text.find("fftw_plan_with_nthreads"), std::string::npos);
  for (const Fix& fix : findings[0].fixes) EXPECT_FALSE(fix.verified);
}

TEST(LostThreadPool, GivesEachAdviceOnce) {
  for (const Owner owner : {Owner::kTorch, Owner::kAwsCrt, Owner::kGrpc}) {
    model::Model model = dead_child({{owner, 1}});
    model.processes[1].exe = "/usr/bin/python3.11";
    const auto findings = diagnose(model);
    ASSERT_EQ(findings.size(), 1U);
    const auto names_start_methods = [](const Fix& fix) {
      return fix.text.find("set_start_method") != std::string::npos;
    };
    EXPECT_EQ(std::ranges::count_if(findings[0].fixes, names_start_methods), 1) << findings[0].culprit.name;
  }
}

TEST(LostThreadPool, IsLikelyIfASignalHandlerCouldEndTheWait) {
  model::Model model = dead_child({{Owner::kGlib, 1}});
  model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  model.processes[1].ways_out = {"a handler of SIGTERM"};
  EXPECT_TRUE(diagnose(model).empty()) << "it may be an idle worker that SIGTERM ends";
}

TEST(LostThreadPool, TakesTheProgramsThreadsForAPoolIfSeveralWereMadeAtOnePlace) {
  EXPECT_EQ(only_rule(dead_child({{Owner::kStdThread, 2}})), "lost-thread-pool");
  EXPECT_EQ(only_rule(dead_child({{Owner::kUnknown, 3}})), "lost-wakeup")
      << "threads of an unknown owner may be anything";
  EXPECT_EQ(only_rule(dead_child({{Owner::kStdThread, 1}})), "lost-wakeup");
  EXPECT_EQ(only_rule(dead_child({{Owner::kUnknown, 1}})), "lost-wakeup");
  model::Model apart = dead_child({{Owner::kStdThread, 2}});
  apart.threads.back().created_at = test::make_stack({"other app.c:9", "main app.c:21"});
  EXPECT_EQ(only_rule(apart), "lost-wakeup");
}

TEST(LostThreadPool, NamesNoPoolIfOtherThreadsMayBeTheCause) {
  EXPECT_EQ(only_rule(dead_child({{Owner::kFftw, 2}, {Owner::kTbb, 2}})), "lost-wakeup")
      << "it is not known which pool the child waits for";
  model::Model with_unknown = dead_child({{Owner::kFftw, 2}});
  with_unknown.forks[0].unknown_threads = 1;
  EXPECT_EQ(only_rule(with_unknown), "lost-wakeup");
  model::Model with_rebuilt = dead_child({{Owner::kFftw, 2}, {Owner::kLibomp, 3}});
  with_rebuilt.forks[0].thread_pools[1].state = PoolState::kRebuilds;
  EXPECT_EQ(only_rule(with_rebuilt), "lost-thread-pool") << "a pool that the runtime rebuilds is not lost";
}

// A child that hangs in an OpenMP runtime whose atfork handler should have rebuilt the pool.
model::Model dead_in_openmp(Owner owner, const char* library) {
  model::Model model = dead_child({{owner, 3}});
  model.forks[0].thread_pools[0].state = PoolState::kRebuilds;
  model.forks[0].thread_pools[0].library = library;
  model::Frame runtime;
  runtime.module = library;
  model::Frame libc;
  libc.module = "/lib/x86_64-linux-gnu/libc.so.6";
  model::Stack stack = test::make_stack({"work app.c:31"});
  stack.frames.insert(stack.frames.begin(), {libc, runtime, runtime});
  model.processes[1].waits[0].stack = stack;
  return model;
}

TEST(LostOpenmpPool, IsReportedIfTheRuntimeDidNotRebuildItsPool) {
  const model::Model model = dead_in_openmp(Owner::kLibomp, "/usr/lib/libomp.so.5");
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lost-openmp-pool");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].cause, Certainty::kLikely);
  EXPECT_EQ(findings[0].culprit.name, "LLVM OpenMP pool of 3 threads");
  ASSERT_FALSE(findings[0].fixes.empty());
  const auto sets_it = [](const Fix& fix) { return fix.text.starts_with("Set KMP_INIT_AT_FORK=TRUE"); };
  EXPECT_TRUE(std::ranges::any_of(findings[0].fixes, sets_it));
  for (const Fix& fix : findings[0].fixes) EXPECT_EQ(fix.text.find("--omp="), std::string::npos) << fix.text;
  const auto intel = diagnose(dead_in_openmp(Owner::kLibiomp5, "/opt/intel/libiomp5.so"));
  ASSERT_EQ(intel.size(), 1U);
  EXPECT_EQ(intel[0].rule, "lost-openmp-pool");
  model::Model bypassed = dead_in_openmp(Owner::kLibomp, "/usr/lib/libomp.so.5");
  bypassed.forks[0].bypassed = true;
  bypassed.forks[0].is_inferred = true;
  for (const Finding& finding : diagnose(bypassed)) {
    for (const Fix& fix : finding.fixes) EXPECT_EQ(fix.text.find("KMP_INIT_AT_FORK"), std::string::npos);
  }
}

TEST(LostOpenmpPool, IsNotBlamedForWhatARegionWaitsFor) {
  model::Model in_body = dead_in_openmp(Owner::kLibomp, "/usr/lib/libomp.so.5");
  model::Frame body;
  body.module = "/opt/app/app";
  body.function = "wait_for_answer";
  auto& frames = in_body.processes[1].waits[0].stack.frames;
  frames.insert(frames.begin() + 1, body);
  EXPECT_EQ(only_rule(in_body), "lost-wakeup");
  model::Model with_workers = dead_in_openmp(Owner::kLibomp, "/usr/lib/libomp.so.5");
  with_workers.processes[1].waits.push_back(with_workers.processes[1].waits[0]);
  EXPECT_EQ(only_rule(with_workers), "lost-wakeup") << "the other thread of the child may belong to a rebuilt pool";
  model::Model without_pool = dead_in_openmp(Owner::kFftw, "/usr/lib/libomp.so.5");
  without_pool.forks[0].thread_pools[0].library = "/usr/lib/libfftw3_threads.so.3";
  EXPECT_EQ(only_rule(without_pool), "lost-wakeup") << "the fork lost no thread of this runtime";
}

TEST(LostThreadPool, IsSilentWithoutTheProof) {
  model::Model model = dead_child({{Owner::kFftw, 2}});
  model.processes[1].liveness = model::Liveness::kAwake;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(LostBlasPool, ReplacesTheOrphanedMutexOfOpenblas) {
  LockTrace scene({});
  scene.touch(trace::TouchKind::kLock);
  model::Model model = read_model(scene.trace);
  model.locks[0].module = "/usr/lib/libopenblas.so.0";
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lost-blas-pool");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].culprit.name, "OpenBLAS pool");
  model.touches[0].action = model::TouchAction::kRecovered;
  EXPECT_NE(diagnose(model)[0].summary.find("child 2000 would have hung, but for --on-orphan=recover, in OpenBLAS"),
            std::string::npos)
      << diagnose(model)[0].summary;
  model.touches[0].action = model::TouchAction::kNone;
  model.locks[0].module = "/opt/app/app";
  EXPECT_EQ(only_rule(model), "orphaned-mutex");
}

model::Model hung_region(bool with_libomp) {
  PoolTrace scene({.workers = 3});
  scene.touch(4);
  model::Model model = read_model(scene.trace);
  if (with_libomp) {
    model::Pool other;
    other.kind = model::RuntimeKind::kLibomp;
    other.library = "/usr/lib/libomp.so.5";
    other.rebuilds_itself = true;
    model.forks[0].pools.push_back(model.pools.size());
    model.pools.push_back(other);
  }
  return model;
}

// OpenBLAS ends its pool before a fork and starts it again in the parent afterwards. Threads of the pool that were seen
// after the fork do not show that the fork lost any threads.
TEST(PoolState, DependsOnWhenTheThreadsWereSeen) {
  model::ThreadPool pool{Owner::kOpenblas, "libopenblas.so.0", {1}, 1, PoolState::kLost};
  model::Fork fork;
  EXPECT_EQ(find_pool_state(pool, fork, {}), PoolState::kLost)
      << "the trace recorded the threads after the prepare handlers had run";
  fork.is_inferred = true;
  EXPECT_EQ(find_pool_state(pool, fork, {}), PoolState::kHandled);
  pool.threads.clear();
  fork.is_inferred = false;
  EXPECT_EQ(find_pool_state(pool, fork, {}), PoolState::kHandled);
}

// Arrow makes its pool anew in a child handler. With ARROW_REGISTER_ATFORK=0, Arrow does not register its
// handlers.
TEST(PoolState, DependsOnTheHandlerThatMakesThePoolAnew) {
  const model::ThreadPool pool{Owner::kArrow, "libarrow.so.2500", {1}, 1, PoolState::kLost};
  model::Fork fork;
  model::AtforkHandlers handlers{"libarrow.so.2500", {}, {true, true, false}};
  EXPECT_EQ(find_pool_state(pool, fork, {}), PoolState::kLost);
  EXPECT_EQ(find_pool_state(pool, fork, {&handlers, 1}), PoolState::kLost) << "Arrow has registered no child handler";
  handlers.has[2] = true;
  EXPECT_EQ(find_pool_state(pool, fork, {&handlers, 1}), PoolState::kRebuilds);
  handlers.library = "libmimalloc.so.3";
  EXPECT_EQ(find_pool_state(pool, fork, {&handlers, 1}), PoolState::kLost)
      << "the child handler belongs to another library";
  EXPECT_EQ(find_pool_state(pool, fork, std::vector(128, handlers)), PoolState::kRebuilds)
      << "the list of handlers may be cut";
  fork.is_inferred = true;
  EXPECT_EQ(find_pool_state(pool, fork, {}), PoolState::kRebuilds) << "without a trace the handlers are not known";
}

TEST(MixedOpenmpRuntimes, ReplacesTheLostPool) {
  EXPECT_EQ(only_rule(hung_region(false)), "lost-openmp-pool");
  const auto findings = diagnose(hung_region(true));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "mixed-openmp-runtimes");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_NE(findings[0].summary.find("libomp.so.5"), std::string::npos);
}

TEST(MixedOpenmpRuntimes, IsSilentIfNothingHangs) {
  model::Model model = hung_region(true);
  model.touches[0].returned = true;
  EXPECT_TRUE(diagnose(model).empty());
  model.touches[0].cured = true;
  EXPECT_EQ(only_rule(model), "lost-openmp-pool") << "a region that was cured is reported as the lost pool";
}

}  // namespace
}  // namespace forksight
