// Tests the rule about processes in which all threads wait for each other. The threads wait for objects that record no
// owner: semaphores, condition variables, barriers and futures.
#include <gtest/gtest.h>

#include <signal.h>
#include <algorithm>

#include "dead_process.hpp"
#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using model::FutexUse;
using model::WaitKind;

model::Wait sleeper(std::int32_t pid, std::int32_t tid, std::initializer_list<const char*> frames) {
  model::Wait wait;
  wait.tid = tid;
  wait.name = "app";
  wait.kind = WaitKind::kFutex;
  wait.object = 0x1000 + static_cast<std::uint64_t>(tid);
  wait.wakers_known = true;
  wait.wakers = {{pid, 0, -1, "futex"}};
  wait.is_stuck = true;
  wait.stack = test::make_stack(frames);
  return wait;
}

model::Wait in_semaphore(std::int32_t pid, std::int32_t tid) {
  return sleeper(pid, tid, {"__new_sem_wait_slow64 libc.so.6", "move app.c:27", "main app.c:50"});
}

model::Wait in_join(std::int32_t pid, std::int32_t tid, std::int32_t whom) {
  model::Wait wait = sleeper(pid, tid, {"__pthread_clockjoin_ex libc.so.6", "main app.c:52"});
  wait.use = FutexUse::kJoin;
  wait.owner = whom;
  wait.wakers = {{pid, whom, -1, "join"}};
  return wait;
}

model::Model two_in_semaphores() {
  return model_of({dead_process(100, {in_semaphore(100, 100), in_semaphore(100, 101)})});
}

TEST(Deadlock, NamesEachThreadThatWaits) {
  const auto found = diagnose(two_in_semaphores());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rule, "deadlock");
  EXPECT_EQ(found[0].harm, Certainty::kProven);
  EXPECT_EQ(found[0].outcome, Outcome::kHang);
  EXPECT_EQ(found[0].summary,
            "process 100 hangs: its 2 threads all wait, and no thread is left to wake them: thread 100 \"app\" in "
            "sem_wait() (app.c:27)");
  ASSERT_GE(found[0].chain.size(), 2U);
  EXPECT_EQ(found[0].chain[0],
            "Thread 100 \"app\" waits in sem_wait() at app.c:27 (move) for the thread that posts it.");
  EXPECT_EQ(found[0].chain[1],
            "Thread 101 \"app\" waits in sem_wait() at app.c:27 (move) for the thread that posts it.");
}

model::Frame line_of_python(const char* file, const char* function, std::uint32_t line) {
  model::Frame frame;
  frame.function = function;
  frame.file = file;
  frame.line = line;
  frame.python = true;
  return frame;
}

model::Wait in_python_join(std::int32_t tid) {
  model::Wait wait = sleeper(100, tid, {"__new_sem_wait_slow64 libc.so.6"});
  wait.stack.frames.push_back(line_of_python("/usr/lib/python3.11/threading.py", "_wait_for_tstate_lock", 1132));
  wait.stack.frames.push_back(line_of_python("/usr/lib/python3.11/threading.py", "join", 1112));
  wait.stack.frames.push_back(line_of_python("app.py", "wait_for_workers", 10));
  return wait;
}

model::Wait in_python_lock(std::int32_t tid) {
  model::Wait wait = sleeper(100, tid, {"__new_sem_wait_slow64 libc.so.6"});
  wait.stack.frames.push_back(line_of_python("app.py", "take_both", 7));
  return wait;
}

// The thread in join() waits for a thread that is stuck, too.
TEST(Deadlock, NamesAThreadThatWaitsForMoreThanTheEndOfAnotherOne) {
  const auto found =
      diagnose(model_of({dead_process(100, {in_python_join(100), in_python_lock(101), in_python_lock(102)})}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tid, 101);
  EXPECT_NE(found[0].summary.find("app.py:7"), std::string::npos) << found[0].summary;
}

TEST(Deadlock, NamesTheFirstThreadOfAProcessLastIfAllThreadsWaitForTheEndOfAnother) {
  const auto found = diagnose(model_of({dead_process(100, {in_python_join(100), in_python_join(101)})}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tid, 101);
}

TEST(Deadlock, DoesNotCountTheFirstThreadOnceItHasEnded) {
  model::Model model = two_in_semaphores();
  model.processes[0].waits[0].state = 'Z';
  model.processes[0].waits[0].kind = WaitKind::kOther;
  const auto found = diagnose(model);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].chain[1],
            "For 1.4 s its only thread has slept in a futex without a timeout, and no thread of any process can wake "
            "it: this proves that the process never goes on.");
}

TEST(Deadlock, BlamesTheWaitThatHasNoOwner) {
  const auto found = diagnose(model_of({dead_process(100, {in_join(100, 100, 101), in_semaphore(100, 101)})}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tid, 101);
  EXPECT_EQ(found[0].chain[0],
            "Thread 100 \"app\" waits in pthread_join() at app.c:52 (main) for the end of thread 101.");
}

// The main thread of Python waits in the standard library for the end of other threads. The line of the program is on
// the stack of another thread.
TEST(Deadlock, NamesTheThreadAtALineOfTheProgramFirst) {
  const auto in_library = sleeper(100, 100, {"__new_sem_wait_slow64 libc.so.6"});
  const auto found = diagnose(model_of({dead_process(100, {in_library, in_semaphore(100, 101)})}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tid, 101);
  EXPECT_EQ(found[0].summary,
            "process 100 hangs: its 2 threads all wait, and no thread is left to wake them: thread 101 \"app\" in "
            "sem_wait() (app.c:27)");
  EXPECT_TRUE(found[0].chain[0].starts_with("Thread 100 ")) << found[0].chain[0];
  const auto without = diagnose(model_of({dead_process(100, {in_library})}));
  ASSERT_EQ(without.size(), 1U);
  EXPECT_EQ(without[0].tid, 100);
}

TEST(Deadlock, OfASingleThreadSaysThatNoOtherCouldWakeIt) {
  const auto found = diagnose(model_of({dead_process(
      100, {sleeper(100, 100, {"pthread_cond_wait libc.so.6", "wait_for_result app.c:32", "main app.c:41"})})}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].summary,
            "process 100 hangs in pthread_cond_wait() (app.c:32): it has no other thread that could wake it");
  ASSERT_GE(found[0].fixes.size(), 2U);
  EXPECT_NE(found[0].fixes[1].text.find("loop"), std::string::npos);
}

TEST(Deadlock, ThreadsAtOnePlaceAreNamedOnce) {
  std::vector<model::Wait> waits{in_semaphore(100, 100)};
  for (std::int32_t tid = 101; tid < 110; ++tid) {
    waits.push_back(sleeper(100, tid, {"pthread_cond_wait libc.so.6", "work app.c:8"}));
    waits.back().object_name = "has_task";
  }
  const auto found = diagnose(model_of({dead_process(100, std::move(waits))}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].chain[1],
            "Thread 101 \"app\" waits in pthread_cond_wait() on has_task at app.c:8 (work) for the thread that signals "
            "it, as 8 more do.");
}

TEST(Deadlock, ProcessesThatWaitInSharedMemoryAreOneFinding) {
  model::Model model =
      model_of({dead_process(100, {in_semaphore(100, 100)}), dead_process(200, {in_semaphore(200, 200)})});
  for (model::Process& one : model.processes) {
    one.waits[0].wakers = {{100, 0, -1, "shared memory"}, {200, 0, -1, "shared memory"}};
  }
  const auto found = diagnose(model);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].processes.size(), 2U);
  // With kDeadButForSignal and an empty `ways_out`, only Python's handler for Ctrl-C could end the wait of the process.
  model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  EXPECT_EQ(diagnose(model).front().harm, Certainty::kLikely);
  model.processes[1].ways_out = {"a handler of SIGTERM"};
  EXPECT_TRUE(diagnose(model).empty());
  model.processes[1].liveness = model::Liveness::kAwake;
  EXPECT_TRUE(diagnose(model).empty());
}

// An idle program in which all threads wait until a signal ends the program looks the same as a deadlock.
TEST(Deadlock, IsSilentIfAHandlerCouldEndIt) {
  model::Model model = two_in_semaphores();
  model.processes[0].liveness = model::Liveness::kDeadButForSignal;
  model.processes[0].ways_out = {"a handler of SIGTERM"};
  EXPECT_TRUE(diagnose(model).empty());
  EXPECT_TRUE(find_unexplained(model, {}).empty());
  model.processes[0].liveness = model::Liveness::kAwake;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(Deadlock, IsLikelyIfOnlyAHandlerForCtrlCCouldEndIt) {
  model::Model model = two_in_semaphores();
  model.processes[0].liveness = model::Liveness::kDeadButForSignal;
  EXPECT_EQ(diagnose(model).front().harm, Certainty::kLikely);
  EXPECT_EQ(diagnose(model).front().outcome, Outcome::kHang);
}

TEST(Deadlock, IsSilentIfAThreadMayGoOnOrStacksAreMissingOrInACore) {
  model::Model model = two_in_semaphores();
  model.processes[0].waits[1].is_stuck = false;
  EXPECT_TRUE(diagnose(model).empty());
  model = two_in_semaphores();
  for (model::Wait& wait : model.processes[0].waits) wait.stack = {};
  EXPECT_TRUE(diagnose(model).empty());
  model = two_in_semaphores();
  model.processes[0].is_core = true;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(Deadlock, AThreadThatHasEndedIsNotCounted) {
  model::Model model = two_in_semaphores();
  model.processes[0].waits[0].is_stuck = false;
  model.processes[0].waits[0].state = 'Z';
  const auto found = diagnose(model);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tid, 101);
  EXPECT_NE(found[0].summary.find("no other thread"), std::string::npos) << found[0].summary;
}

model::Wait in_future(std::int32_t pid, std::int32_t tid, const char* caller) {
  return sleeper(pid, tid,
                 {"std::__future_base::_State_baseV2::wait future:350", "std::future<int>::get future:800", caller,
                  "main app.c:50"});
}

bool has_fix(const Finding& finding, std::string_view part) {
  return std::ranges::any_of(finding.fixes, [&](const Fix& fix) { return fix.text.find(part) != std::string::npos; });
}

TEST(Deadlock, APromiseThatNobodySetsGetsNoAdviceAboutPools) {
  const auto found = diagnose(model_of({dead_process(100, {in_future(100, 100, "ask app.c:27")})}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].summary,
            "process 100 hangs in std::future::get() (app.c:27): it has no other thread that could set the promise");
  EXPECT_TRUE(has_fix(found[0], "set_exception()"));
  EXPECT_FALSE(has_fix(found[0], "own pool"));
}

TEST(Deadlock, SaysThatATaskWaitsForAnotherTask) {
  const auto found =
      diagnose(model_of({dead_process(100, {in_future(100, 100, "ask app.c:27"),
                                            in_future(100, 101, "std::packaged_task<int()>::operator()(app.c:31")})}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].summary.find("thread 101 \"app\" waits inside of a task for the result of another"),
            std::string::npos)
      << found[0].summary;
  EXPECT_TRUE(has_fix(found[0], "own pool"));
}

TEST(Deadlock, SaysHowManyThreadsAreAtABarrier) {
  const std::initializer_list<const char*> at_barrier = {"pthread_barrier_wait libc.so.6", "meet app.c:27"};
  const auto diagnose_threads_at = [&](std::uint64_t one, std::uint64_t other) {
    model::Wait first = sleeper(100, 100, at_barrier);
    model::Wait second = sleeper(100, 101, at_barrier);
    first.object = one;
    second.object = other;
    return diagnose(model_of({dead_process(100, {first, second, in_join(100, 102, 101)})}));
  };
  const auto found = diagnose_threads_at(0x1000, 0x1000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].summary,
            "process 100 hangs in pthread_barrier_wait() (app.c:27): 2 threads are there, and no thread is left that "
            "could arrive next");
  EXPECT_TRUE(has_fix(found[0], "as many threads as arrive at it"));
  const auto at_two = diagnose_threads_at(0x1000, 0x2000);
  ASSERT_EQ(at_two.size(), 1U);
  EXPECT_FALSE(has_fix(at_two[0], "as many threads as arrive at it")) << "the threads use two barriers in another order";
  const auto beside = diagnose(model_of({dead_process(100, {sleeper(100, 100, at_barrier), in_semaphore(100, 101)})}));
  ASSERT_EQ(beside.size(), 1U);
  EXPECT_FALSE(has_fix(beside[0], "as many threads as arrive at it")) << "the barrier may wait for the other thread";
}

TEST(Deadlock, KnowsThatATaskOfAPythonExecutorWaitsForAnotherTask) {
  model::Wait worker = sleeper(100, 101, {});
  for (const auto& [function, file] : std::initializer_list<std::pair<const char*, const char*>>{
           {"wait", "/usr/lib/python3.11/threading.py"},
           {"result", "/usr/lib/python3.11/concurrent/futures/_base.py"},
           {"node", "/app/tree.py"},
           {"_worker", "/usr/lib/python3.11/concurrent/futures/thread.py"}}) {
    model::Frame frame;
    frame.python = true;
    frame.function = function;
    frame.file = file;
    frame.line = 7;
    worker.stack.frames.push_back(frame);
  }
  const auto found = diagnose(model_of({dead_process(100, {worker})}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].summary.find("waits inside of a task for the result of another"), std::string::npos);
  EXPECT_TRUE(has_fix(found[0], "A task must not wait for a task of its own pool"));
  EXPECT_TRUE(std::ranges::any_of(found[0].chain, [](const std::string& sentence) {
    return sentence.find("in the middle of a task (ThreadPoolExecutor)") != std::string::npos;
  }));
}

TEST(Deadlock, LeavesWaitsThatHaveAnOwnerToOtherRules) {
  EXPECT_TRUE(diagnose(model_of({dead_process(100, {in_join(100, 100, 999)})})).empty());
}

TEST(Deadlock, MentionsLostThreadsOnlyIfTheForkMayHaveLostSome) {
  model::Model model = model_of({dead_process(50, {}), dead_process(100, {in_semaphore(100, 100)})});
  model.processes[0].liveness = model::Liveness::kAwake;
  model::Fork fork;
  fork.process = 0;
  fork.child = 1;
  fork.is_inferred = true;
  model.threads.emplace_back();
  model.forks.push_back(fork);
  const auto says_lost = [&] {
    const auto found = diagnose(model);
    EXPECT_EQ(found.size(), 1U);
    EXPECT_EQ(found.at(0).rule, "deadlock");
    EXPECT_EQ(found.at(0).cause, Certainty::kUnknown);
    return std::ranges::any_of(found.at(0).chain, [](const std::string& sentence) {
      return sentence.find("that a fork left behind") != std::string::npos;
    });
  };
  EXPECT_FALSE(says_lost());
  model.forks[0].unknown_threads = 1;
  EXPECT_TRUE(says_lost());
}

}  // namespace
}  // namespace forksight
