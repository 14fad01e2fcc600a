// Tests what the reader of traces says about atfork handlers, about the threads that atfork handlers end, and about the
// library to which a thread belongs.
#include <gtest/gtest.h>

#include <set>

#include "model/owners.hpp"
#include "support/handler_scene.hpp"

namespace forksight {
namespace {

using model::Owner;
using model::PoolState;
using test::HandlerTrace;
using test::read_model;

model::Thread thread_of(const char* start_library, const char* start_routine = "") {
  model::Thread thread;
  thread.start_library = start_library;
  thread.start_routine = start_routine;
  return thread;
}

TEST(Owners, AreKnownByTheLibraryOfTheStartRoutine) {
  EXPECT_EQ(find_owner(thread_of("/usr/lib/libgomp.so.1")), Owner::kLibgomp);
  EXPECT_EQ(find_owner(thread_of("/venv/numpy.libs/libgomp-a34b3233.so.1.0.0")), Owner::kLibgomp);
  EXPECT_EQ(find_owner(thread_of("/venv/numpy.libs/libscipy_openblas64_-ff651d7f.so")), Owner::kOpenblas);
  EXPECT_EQ(find_owner(thread_of("/usr/lib/libfftw3f_threads.so.3")), Owner::kFftw);
  EXPECT_EQ(find_owner(thread_of("/usr/lib/libtbbmalloc.so.2")), Owner::kUnknown);
  EXPECT_EQ(find_owner(thread_of("/opt/app/app", "worker_main")), Owner::kUnknown);
  EXPECT_EQ(find_owner(thread_of("")), Owner::kUnknown);
}

TEST(Owners, AreKnownByTheStartRoutineOfAStaticallyLinkedLibrary) {
  EXPECT_EQ(find_owner(thread_of("/opt/app/app", "blas_thread_server")), Owner::kOpenblas);
}

// RCCL is the version of NCCL for GPUs of AMD.
TEST(Owners, AreTheSameForNcclAndRccl) {
  EXPECT_EQ(find_owner(thread_of("/usr/lib/x86_64-linux-gnu/libnccl.so.2.22.3", "bootstrapRoot")), Owner::kNccl);
  EXPECT_EQ(find_owner(thread_of("/usr/lib/x86_64-linux-gnu/librccl.so.1.0", "")), Owner::kNccl);
}

TEST(Owners, OfThreadsWithAGeneralStartRoutineAreKnownByTheirCreator) {
  model::Thread thread = thread_of("/usr/lib/libstdc++.so.6", "execute_native_thread_routine");
  EXPECT_EQ(find_owner(thread), Owner::kStdThread);
  thread.created_at =
      test::make_stack({"std::thread::thread libstdc++.so.6", "spawn libarrow.so.1400", "main app.c:3"});
  EXPECT_EQ(find_owner(thread), Owner::kArrow);
  thread.created_at = test::make_stack({"std::thread::thread libstdc++.so.6", "main app.c:3"});
  EXPECT_EQ(find_owner(thread), Owner::kStdThread);
  EXPECT_EQ(find_owning_library(thread), "/opt/app/app");
}

// A runtime that is linked statically has no library of its own. The stack of the call that created a thread then shows
// which runtime owns the thread.
TEST(Owners, AreKnownByTheStackThatCreatedTheThread) {
  model::Thread thread = thread_of("/opt/app/app", "std::sys::thread::unix::{impl#2}::new::thread_start");
  thread.created_at = test::make_stack({"std::thread::Builder::spawn_unchecked app", "rayon_core::registry::Registry::new app",
                                        "tokio::runtime::blocking::pool::Inner::run app", "main app"});
  EXPECT_EQ(find_owner(thread), Owner::kRayon) << "the innermost runtime on the stack made the thread";
  thread.created_at = test::make_stack({"std::thread::Builder::spawn_unchecked app", "app::start app"});
  EXPECT_EQ(find_owner(thread), Owner::kUnknown);
  thread = thread_of("/usr/lib/libstdc++.so.6", "execute_native_thread_routine");
  thread.created_at = test::make_stack(
      {"std::thread::thread libstdc++.so.6", "Eigen::StlThreadEnvironment::EnvThread::EnvThread app", "main app.c:3"});
  EXPECT_EQ(find_owner(thread), Owner::kEigen);
}

TEST(Owners, AreKnownByTheOutermostRuntimeOnTheStackOfTheThread) {
  const model::Thread rust = thread_of("/opt/app/app", "std::sys::thread::unix::{impl#2}::new::thread_start");
  const model::Stack worker = test::make_stack({"app::work app", "rayon_core::registry::Registry::in_worker app",
                                                "tokio::runtime::scheduler::multi_thread::worker::run app",
                                                "std::sys::thread::unix::{impl#2}::new::thread_start app"});
  EXPECT_EQ(find_owner(rust, worker), Owner::kTokio) << "this is a worker of tokio, which calls rayon";
  const model::Stack user = test::make_stack({"tokio::runtime::runtime::Runtime::block_on app", "app::main_loop app"});
  EXPECT_EQ(find_owner(rust, user), Owner::kUnknown) << "this is the program's own thread, which calls tokio";
  const model::Thread cpp = thread_of("/usr/lib/libstdc++.so.6", "execute_native_thread_routine");
  EXPECT_EQ(find_owner(cpp, test::make_stack({"work app", "arrow::Loop libarrow.so.1400", "execute_native_thread_routine libstdc++.so.6"})),
            Owner::kArrow);
  EXPECT_EQ(find_owner(cpp, test::make_stack({"arrow::Loop libarrow.so.1400", "work app",
                                              "execute_native_thread_routine libstdc++.so.6"})),
            Owner::kStdThread)
      << "this is the program's own thread, which calls Arrow";
}

TEST(Owners, HaveDifferentKeys) {
  std::set<std::string> keys{model::info_of(Owner::kUnknown).key};
  for (const model::OwnerInfo& info : model::all_owners()) {
    EXPECT_TRUE(keys.insert(info.key).second) << info.key;
    EXPECT_EQ(model::info_of(info.owner).key, info.key) << "the table must be in the order of the enumeration";
    EXPECT_STRNE(info.fix, "") << info.key;
  }
}

// Returns the pool of a library that has one worker before the fork. `survives` says whether the worker still exists after
// the prepare handlers.
model::ThreadPool pool_after(const char* library, bool survives) {
  constexpr std::uint64_t kBias = 0x7f00'0000'0000;
  test::TraceBuilder trace;
  trace.module(library, kBias, kBias, kBias + 0x50000);
  const std::uint64_t forking = trace.thread(test::kParent, "app", 0, 0, 0, trace::kThreadMain);
  const std::uint64_t worker = trace.thread(test::kHolder, "app", test::kParent, kBias + 0x1500);
  trace::ForkRecord fixed{};
  fixed.ordinal = 1;
  fixed.forking_thread = forking;
  const std::uint64_t fork = trace.fork(fixed, survives ? std::vector{worker} : std::vector<std::uint64_t>{}, {});
  if (!survives) {
    std::vector<std::byte> payload(sizeof(trace::GoneRecord) + sizeof worker);
    const trace::GoneRecord gone{fork, 1, 0};
    std::memcpy(payload.data(), &gone, sizeof gone);
    std::memcpy(payload.data() + sizeof gone, &worker, sizeof worker);
    trace.append(trace::RecordType::kGone, payload);
  }
  const model::Model model = read_model(trace);
  EXPECT_EQ(model.forks.at(0).thread_pools.size(), 1U);
  return model.forks.at(0).thread_pools.at(0);
}

TEST(ThreadPools, AreHandledLostOrRebuilt) {
  const model::ThreadPool ended = pool_after("/usr/lib/libopenblas.so.0", false);
  EXPECT_EQ(ended.owner, Owner::kOpenblas);
  EXPECT_EQ(ended.before, 1U);
  EXPECT_TRUE(ended.threads.empty());
  EXPECT_EQ(ended.state, PoolState::kHandled);
  EXPECT_EQ(pool_after("/usr/lib/libopenblas.so.0", true).state, PoolState::kLost);
  EXPECT_EQ(pool_after("/usr/lib/libgomp.so.1", true).state, PoolState::kLost);
  EXPECT_EQ(pool_after("/usr/lib/libomp.so.5", true).state, PoolState::kRebuilds);
  EXPECT_EQ(pool_after("/usr/lib/libjemalloc.so.2", true).state, PoolState::kHandled);
}

TEST(Handlers, HaveTheirTimesAtTheForkThatRanThem) {
  HandlerTrace scene;
  scene.make_child();
  scene.trace.as(test::kParent);
  scene.run(trace::HandlerPhase::kPrepare, std::nullopt);
  scene.trace.as(test::kChild);
  scene.run(trace::HandlerPhase::kChild, std::nullopt);
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.forks.size(), 1U);
  const auto& handlers = model.forks[0].handlers;
  ASSERT_EQ(handlers.size(), 2U);
  EXPECT_EQ(model.handlers[handlers[0].handlers].library, "/usr/lib/libpool.so");
  EXPECT_EQ(handlers[0].ns[0], 1000U);
  EXPECT_EQ(handlers[1].ns[1], 2001U);
  EXPECT_EQ(handlers[1].ns[2], 3001U);
  EXPECT_TRUE(model.handler_runs.empty());
}

TEST(Handlers, RunLastInFirstOutBeforeTheFork) {
  HandlerTrace scene;
  scene.run(trace::HandlerPhase::kPrepare, 1);
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.handler_runs.size(), 1U);
  EXPECT_EQ(model.handler_runs[0].place, 1U);
  EXPECT_EQ(model.handler_runs[0].of, 2U);
}

TEST(Handlers, WithImpossibleValuesAreLeftOut) {
  HandlerTrace scene;
  scene.run(trace::HandlerPhase::kPrepare, 2);  // there are only two handlers, 0 and 1
  scene.run(static_cast<trace::HandlerPhase>(7), 0);
  scene.wait(12345, trace::HandlerWaitKind::kLock, scene.worker);
  const model::Model model = read_model(scene.trace);
  EXPECT_TRUE(model.handler_runs.empty());
  EXPECT_FALSE(model.limits.empty()) << "a reference to no record must be reported";
}

}  // namespace
}  // namespace forksight
