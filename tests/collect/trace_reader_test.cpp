#include <gtest/gtest.h>

#include <algorithm>

#include "support/scenes.hpp"

namespace forksight::collect {
namespace {

using test::kChild;
using test::kHolder;
using test::kParent;
using test::LockTrace;
using test::PoolTrace;
using test::read_model;
using test::TraceBuilder;

bool has_limit(const model::Model& model, const std::string& part) {
  return std::ranges::any_of(model.limits,
                             [&](const std::string& limit) { return limit.find(part) != std::string::npos; });
}

TEST(TraceReader, ReadsALockThatWasHeld) {
  LockTrace scene({});
  const auto touch = scene.touch(trace::TouchKind::kLock, trace::kTouchTimed);
  scene.end(touch, 110);
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.processes.size(), 2U);
  EXPECT_EQ(model.processes[0].pid, kParent);
  EXPECT_EQ(model.processes[0].start_ticks, 777U);
  EXPECT_EQ(model.processes[1].pid, kChild);
  EXPECT_EQ(model.processes[1].ppid, kParent);
  EXPECT_EQ(model.processes[1].host, "node1");

  ASSERT_EQ(model.forks.size(), 1U);
  const model::Fork& fork = model.forks[0];
  EXPECT_EQ(fork.child, std::optional<model::ProcessId>(1));
  EXPECT_EQ(fork.total_ns, 100'000U);
  EXPECT_EQ(model.threads[fork.forking_thread].tid, kParent);
  ASSERT_EQ(fork.lost_threads.size(), 1U);
  EXPECT_EQ(model.threads[fork.lost_threads[0]].name, "worker");
  EXPECT_EQ(model.threads[fork.lost_threads[0]].start_library, "/opt/app/app");
  EXPECT_EQ(model.threads[fork.lost_threads[0]].process, 0U);
  EXPECT_EQ(fork.unknown_threads, 0U);

  ASSERT_EQ(fork.held.size(), 1U);
  EXPECT_EQ(fork.held[0].holder, fork.lost_threads[0]);
  EXPECT_FALSE(fork.held[0].by_forking_thread);
  EXPECT_EQ(model.locks[fork.held[0].lock].address, test::kLockAddress);
  EXPECT_EQ(model.locks[fork.held[0].lock].type, model::MutexType::kNormal);

  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_EQ(model.touches[0].process, 1U);
  EXPECT_EQ(model.touches[0].held, std::optional<std::size_t>(0));
  EXPECT_TRUE(model.touches[0].timed);
  EXPECT_TRUE(model.touches[0].returned);
  EXPECT_EQ(model.touches[0].result, 110);
  EXPECT_TRUE(model.limits.empty());
}

TEST(TraceReader, ALockWhoseMemorySaysFreeIsNotHeld) {
  LockTrace scene({.memory = test::mutex_memory(0, 0, 0)});
  scene.touch(trace::TouchKind::kLock);
  const model::Model model = read_model(scene.trace);
  EXPECT_TRUE(model.forks[0].held.empty());
  EXPECT_TRUE(model.touches.empty());
  EXPECT_TRUE(has_limit(model, "nobody held at the fork"));
}

TEST(TraceReader, ReadsWhatALostThreadWaitedFor) {
  LockTrace scene({.kind = trace::LockKind::kCondition,
                   .memory = test::condition_memory(3),
                   .holder_waits = trace::WaitKind::kCondition});
  scene.touch(trace::TouchKind::kCondition, trace::kTouchStolen, trace::TouchAction::kNone,
              trace::SyncOperation::kSignal);
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.forks[0].lost_waits.size(), 1U);
  const model::LostWait& wait = model.forks[0].lost_waits[0];
  EXPECT_EQ(wait.thread, model.forks[0].lost_threads[0]);
  EXPECT_EQ(wait.kind, model::AwaitedKind::kCondition);
  EXPECT_EQ(wait.object, test::kLockAddress);
  ASSERT_EQ(model.forks[0].held.size(), 1U);
  EXPECT_EQ(model.forks[0].held[0].waiters, 3U);
  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_EQ(model.touches[0].kind, model::TouchKind::kCondition);
  EXPECT_EQ(model.touches[0].operation, model::SyncOperation::kSignal);
  EXPECT_TRUE(model.touches[0].is_stolen);
}

TEST(TraceReader, AWaitOfAnUnknownKindIsLeftOut) {
  LockTrace scene({.holder_waits = static_cast<trace::WaitKind>(77)});
  EXPECT_TRUE(read_model(scene.trace).forks[0].lost_waits.empty());
}

TEST(TraceReader, MarksAThreadThatEndedWithItsLocks) {
  LockTrace scene({.holder_flags = trace::kThreadEnded});
  const model::Model model = read_model(scene.trace);
  EXPECT_TRUE(model.threads[model.forks[0].held[0].holder].has_ended);
  EXPECT_FALSE(model.threads[model.forks[0].forking_thread].has_ended);
}

TEST(TraceReader, ReadsAPoolItsWorkersAndItsCure) {
  PoolTrace scene({.workers = 3});
  scene.cure(trace::CureMethod::kRebuild, trace::CureResult::kApplied, false);
  scene.cure(trace::CureMethod::kRebuild, trace::CureResult::kApplied, true, 4);
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.pools.size(), 1U);
  const model::Pool& pool = model.pools[0];
  EXPECT_EQ(pool.kind, model::RuntimeKind::kLibgomp);
  EXPECT_EQ(pool.library, "/usr/lib/libgomp.so.1");
  EXPECT_EQ(pool.workers_lost, 3U);
  EXPECT_EQ(pool.workers.size(), 3U);
  EXPECT_EQ(pool.cure, std::optional(model::CureMethod::kRebuild));
  EXPECT_EQ(pool.cure_result, model::CureResult::kApplied);
  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_TRUE(model.touches[0].cured);
  EXPECT_EQ(model.touches[0].team, 4U);
  EXPECT_EQ(model.processes[model.touches[0].process].pid, kChild);
}

TEST(TraceReader, AFailedForkHasNoChild) {
  TraceBuilder trace;
  const auto thread = trace.thread(kParent, "app");
  trace::ForkRecord fixed{};
  fixed.forking_thread = thread;
  const auto fork = trace.fork(fixed, {}, {});
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{fork, -1, 11, 5});
  const model::Model model = read_model(trace);
  EXPECT_FALSE(model.forks[0].child.has_value());
  EXPECT_EQ(model.forks[0].error, 11);
  EXPECT_EQ(model.processes.size(), 1U);
}

TEST(TraceReader, CountsThreadsThatTheShimDidNotRecord) {
  TraceBuilder trace;
  const auto forking = trace.thread(kParent, "app");
  const auto other = trace.thread(kHolder, "worker");
  trace::ForkRecord fixed{};
  fixed.forking_thread = forking;
  fixed.tasks = 5;
  trace.fork(fixed, {other}, {});
  EXPECT_EQ(read_model(trace).forks[0].unknown_threads, 3U);
}

TEST(TraceReader, APidThatIsUsedAgainIsAnotherChild) {
  TraceBuilder trace;
  const auto thread = trace.thread(kParent, "app");
  trace::ForkRecord fixed{};
  fixed.forking_thread = thread;
  const auto first = trace.fork(fixed, {}, {});
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{first, kChild, 0, 5});
  const auto second = trace.fork(fixed, {}, {});
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{second, kChild, 0, 5});
  const model::Model model = read_model(trace);
  ASSERT_EQ(model.processes.size(), 3U);
  EXPECT_NE(model.forks[0].child, model.forks[1].child);
}

TEST(TraceReader, AChildThatWritesBeforeItsParentNamesItIsOneProcess) {
  TraceBuilder trace;
  const auto thread = trace.thread(kParent, "app");
  trace::ForkRecord fixed{};
  fixed.forking_thread = thread;
  const auto fork = trace.fork(fixed, {}, {});
  trace.as(kChild).thread(kChild, "app");
  trace.as(kParent).record(trace::RecordType::kForked, trace::ForkedRecord{fork, kChild, 0, 5});
  const model::Model model = read_model(trace);
  ASSERT_EQ(model.processes.size(), 2U);
  EXPECT_EQ(model.processes[1].ppid, kParent);
  EXPECT_EQ(model.forks[0].child, std::optional<model::ProcessId>(1));
}

TEST(TraceReader, AGrandchildBlamesTheForkThatLostTheLock) {
  LockTrace scene({});
  TraceBuilder& trace = scene.trace;
  trace.as(kChild);
  const auto thread = trace.thread(kChild, "app");
  trace::ForkRecord fixed{};
  fixed.ordinal = 2;
  fixed.forking_thread = thread;
  const auto second = trace.fork(fixed, {}, {});
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{second, 3000, 0, 5});
  scene.child = 3000;
  scene.touch(trace::TouchKind::kLock);
  const model::Model model = read_model(trace);
  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_EQ(model.processes[model.touches[0].process].pid, 3000);
  EXPECT_EQ(model.processes[model.touches[0].process].ppid, kChild);
  EXPECT_EQ(model.touches[0].fork, 0U);
  EXPECT_EQ(model.forks[1].child, std::optional(model.touches[0].process));
}

TEST(TraceReader, ReadsWhatTheProgramCallsItsLock) {
  LockTrace scene({.kind = trace::LockKind::kCustom, .memory = {0}});
  scene.name(scene.touch(trace::TouchKind::kLock), "queue lock");
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.locks.size(), 1U);
  EXPECT_EQ(model.locks[0].kind, model::LockKind::kCustom);
  EXPECT_EQ(model.locks[0].label, "queue lock");
}

TEST(TraceReader, OnlyACustomLockHasANameAndItIsBounded) {
  LockTrace mutex({});
  mutex.name(mutex.touch(trace::TouchKind::kLock), "queue lock");
  EXPECT_EQ(read_model(mutex.trace).locks[0].label, "");
  LockTrace custom({.kind = trace::LockKind::kCustom, .memory = {0}});
  custom.name(custom.touch(trace::TouchKind::kLock), std::string(4000, 'x'));
  EXPECT_EQ(read_model(custom.trace).locks[0].label.size(), 128U);
  LockTrace wait({});
  wait.name(wait.wait(), "no lock");
  EXPECT_EQ(read_model(wait.trace).touches.size(), 1U);
}

TEST(TraceReader, AGuardThatIsNotBeingInitialisedIsNotHeld) {
  for (const std::uint64_t done : {0ULL, 1ULL, 0x101ULL}) {
    LockTrace scene({.kind = trace::LockKind::kGuard, .memory = test::guard_memory(done)});
    EXPECT_TRUE(read_model(scene.trace).forks[0].held.empty()) << done;
  }
  // libc++ sets another bit of the same byte while the initialisation is under way.
  for (const std::uint64_t busy : {0x100ULL, 0x10100ULL, 0x200ULL}) {
    LockTrace scene({.kind = trace::LockKind::kGuard, .memory = test::guard_memory(busy)});
    EXPECT_EQ(read_model(scene.trace).forks[0].held.size(), 1U) << busy;
  }
}

TEST(TraceReader, ReadsAFutexWait) {
  LockTrace scene({});
  scene.end(scene.wait(trace::kTouchHandlers), 4);
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.touches.size(), 1U);
  const model::Touch& touch = model.touches[0];
  EXPECT_EQ(touch.kind, model::TouchKind::kFutexWait);
  EXPECT_EQ(touch.object, test::kLockAddress);
  EXPECT_EQ(touch.value, 7U);
  EXPECT_EQ(touch.team, 0U);
  EXPECT_TRUE(touch.has_handlers);
  EXPECT_TRUE(touch.returned);
  EXPECT_FALSE(touch.held.has_value());
}

TEST(TraceReader, IgnoresReferencesToNoRecord) {
  LockTrace scene({});
  const auto touch = scene.touch(trace::TouchKind::kLock);
  const auto record = [&](std::uint64_t fork, std::uint64_t held) {
    scene.trace.record(
        trace::RecordType::kTouch,
        trace::TouchRecord{fork, trace::TouchKind::kLock, trace::TouchAction::kNone, held, 0, 0, 0, 0, 0, 0, 0});
  };
  record(scene.fork, scene.fork);             // `held` is a record of another type
  record(scene.fork + 8, scene.held);         // `fork` lies inside of a record
  record(scene.fork, 0xffff'ffff'ffff'fff0);  // `held` lies beyond the end of the file
  record(scene.fork, scene.trace.size());     // `held` is this record itself
  record(scene.fork, touch + 1'000);          // `held` lies after this record
  scene.trace.record(trace::RecordType::kTouchEnd, trace::TouchEndRecord{scene.held, 0, 0});
  const model::Model model = read_model(scene.trace);
  EXPECT_EQ(model.touches.size(), 1U);
  EXPECT_FALSE(model.touches[0].returned);
  EXPECT_TRUE(has_limit(model, "6 references name no earlier record"));
}

TEST(TraceReader, SkipsRecordsWithUnknownEnumerators) {
  LockTrace scene({});
  scene.trace.record(trace::RecordType::kTouch,
                     trace::TouchRecord{scene.fork, static_cast<trace::TouchKind>(99), trace::TouchAction::kNone,
                                        scene.held, 0, 0, 0, 0, 0, 0, 0});
  scene.trace.record(trace::RecordType::kHeld,
                     trace::HeldRecord{scene.fork, 1, 0, 0, static_cast<trace::LockKind>(77), 56, {}});
  const model::Model model = read_model(scene.trace);
  EXPECT_TRUE(model.touches.empty());
  EXPECT_EQ(model.forks[0].held.size(), 1U);
}

TEST(TraceReader, NotesBecomeLimits) {
  TraceBuilder trace;
  trace.record(trace::RecordType::kNote, trace::NoteRecord{trace::NoteCode::kThreadTableFull, 0, 17});
  trace.record(trace::RecordType::kNote, trace::NoteRecord{static_cast<trace::NoteCode>(99), 0, 1});
  trace.record(trace::RecordType::kNote, trace::NoteRecord{trace::NoteCode::kHeldOverflow, 0, 3});
  const model::Model model = read_model(trace);
  EXPECT_TRUE(has_limit(model, "process 1000: 17 threads did not fit"));
  EXPECT_TRUE(has_limit(model, "note 99 with value 1"));
  EXPECT_TRUE(has_limit(model, "3 lock acquisitions did not fit"));
}

TEST(TraceReader, NotesOfOneKindGiveOneLimit) {
  TraceBuilder trace;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    trace.as(static_cast<std::int32_t>(2000 + i));
    trace.record(trace::RecordType::kNote, trace::NoteRecord{trace::NoteCode::kHeldOverflow, 0, i});
  }
  const model::Model model = read_model(trace);
  ASSERT_EQ(model.limits.size(), 1U);
  EXPECT_TRUE(has_limit(model, "3 processes, at most per process: 3 lock acquisitions did not fit"));
}

TEST(TraceReader, NotesAreBounded) {
  TraceBuilder trace;
  for (std::uint32_t i = 0; i < 100; ++i) {
    trace.record(trace::RecordType::kNote, trace::NoteRecord{static_cast<trace::NoteCode>(1000 + i), 0, 1});
  }
  const model::Model model = read_model(trace);
  ASSERT_EQ(model.limits.size(), 65U);
  EXPECT_NE(model.limits.back().find("36 more notes"), std::string::npos) << model.limits.back();
}

TEST(TraceReader, ChildrenHaveTheImageOfTheirParent) {
  test::LockTrace scene({});
  scene.trace.as(test::kParent).module("/opt/lib/libforksight.so", 0x7000'0000, 0x7000'1000, 0x7000'9000);
  scene.trace.dropped(1, 64);
  scene.trace.record(trace::RecordType::kPythonSignal, trace::PythonSignalRecord{52, 0});
  trace::ForkRecord fixed{};
  fixed.forking_thread = scene.trace.thread(test::kParent, "app");
  const auto second = scene.trace.fork(fixed, {}, {});
  scene.trace.record(trace::RecordType::kForked, trace::ForkedRecord{second, 3000, 0, 5});
  const model::Model model = read_model(scene.trace);
  const model::Process& child = model.processes.back();
  EXPECT_EQ(child.pid, 3000);
  EXPECT_EQ(child.shim_start, 0x7000'1000U);
  EXPECT_EQ(child.python_signal, 52);
  EXPECT_TRUE(child.has_gaps);
}

TEST(TraceReader, ThreadNamesMayBeAnything) {
  TraceBuilder trace;
  trace.thread(1, std::string(16, '\xff'));
  EXPECT_EQ(read_model(trace).threads.at(0).name, std::string(16, '\xff'));
}

TEST(TraceReader, SaysThatAModuleHasNoPath) {
  for (const bool has_path : {true, false}) {
    test::LockTrace scene({});
    scene.trace.module(has_path ? "/app/program" : "", 0x5550'0000'0000, 0x7770'0000'0000, 0x7770'0000'1000);
    EXPECT_EQ(has_limit(read_model(scene.trace), "path of a program or library was not recorded"), !has_path);
  }
}

}  // namespace
}  // namespace forksight::collect
