// Tests findings about locks of Python. These findings name lines of Python instead of the interpreter's own frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <utility>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::LockTrace;
using test::read_model;

const test::LockScene kPythonLock{.kind = trace::LockKind::kSemaphore, .memory = test::semaphore_memory(0)};

// The rule recognises a lock of Python by the function of the interpreter that waits for it.
void put_interpreter_below(model::Model& model) {
  auto& frames = model.touches[0].stack.frames;
  const auto native = test::make_stack({"__new_sem_wait libc.so.6", "PyThread_acquire_lock_timed python3.11"});
  frames.insert(frames.begin(), native.frames.begin(), native.frames.end());
}

struct Scene {
  explicit Scene(std::string_view touch_text = "") : trace(kPythonLock) {
    trace.trace.exe("/usr/bin/python3.11", std::string_view("python3\0-B\0/app/train.py\0", 25));
    trace.trace.as(test::kParent);
    const auto python = trace.trace.python(trace::PythonMoment::kFork, kAtFork, test::kParent);
    trace.trace.record(trace::RecordType::kPythonAtFork, trace::PythonAtForkRecord{trace.fork, python});
    touch = trace.touch(trace::TouchKind::kLock);
    trace.trace.python(trace::PythonMoment::kTouch, touch_text.empty() ? kAtTouch : touch_text, test::kChild, touch);
  }
  model::Model model(model::Liveness liveness = model::Liveness::kDead) const {
    model::Model model = read_model(trace.trace);
    put_interpreter_below(model);
    model.processes[1].liveness = liveness;
    return model;
  }

  static constexpr std::string_view kAtTouch =
      "Stack (most recent call first):\n"
      "  File \"/usr/lib/python3.11/queue.py\", line 133 in put\n"
      "  File \"/app/worker.py\", line 12 in work\n"
      "  File \"/app/train.py\", line 51 in <module>\n";
  // Thread 0x7f00003e9000 is the holder of the lock.
  static constexpr std::string_view kAtFork =
      "Stack (most recent call first):\n"
      "  File \"/app/train.py\", line 50 in main\n"
      "  File \"/app/train.py\", line 90 in <module>\n"
      "Thread 0x00007f00003e9000 (most recent call first):\n"
      "  File \"/app/loader.py\", line 33 in load\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 982 in run\n";

  LockTrace trace;
  std::uint64_t touch = 0;
};

TEST(PythonLockOrphaned, GivesLinesOfPython) {
  static_assert(test::TraceBuilder::pointer_of(test::kHolder) == 0x7f00'003e'9000);
  const auto findings = diagnose(Scene().model());
  ASSERT_EQ(findings.size(), 1U);
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.rule, "python-lock-orphaned");
  EXPECT_EQ(finding.harm, Certainty::kProven);
  EXPECT_EQ(finding.outcome, Outcome::kHang);
  EXPECT_EQ(finding.summary,
            "child 2000 (python3 train.py) hangs at worker.py:12 in queue.Queue.put: the lock was held by thread 1001 "
            "\"worker\" (loader.py:33, load) when process 1000 forked at train.py:50");
  EXPECT_TRUE(finding.culprit.is_at_fork);
  ASSERT_EQ(finding.culprit.stack.frames.size(), 2U);
  EXPECT_EQ(finding.culprit.holder->start_routine, "load");
  for (const Fix& fix : finding.fixes) EXPECT_EQ(fix.text.find("pthread_atfork"), std::string::npos) << fix.text;
}

// A core does not say which of the lost threads held a lock of Python.
TEST(PythonLockOrphaned, NamesNoThreadThatIsNotKnown) {
  model::Model model = Scene().model();
  for (model::Thread& thread : model.threads) {
    if (thread.tid == test::kHolder) thread.tid = 0;
  }
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("the lock was held by another thread"), std::string::npos) << findings[0].summary;
}

TEST(PythonLockOrphaned, IsCertainIfOnlyPythonsOwnHandlerIsInstalled) {
  const auto findings = diagnose(Scene().model(model::Liveness::kDeadButForSignal));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
}

// A handler of the program may raise an exception, which ends the wait.
TEST(PythonLockOrphaned, IsOnlyLikelyIfTheProgramHasASignalHandler) {
  model::Model model = Scene().model(model::Liveness::kDeadButForSignal);
  model.processes[1].ways_out = {"a handler of SIGALRM"};
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
}

TEST(PythonLockOrphaned, IsOnlyLikelyInACore) {
  model::Model model = Scene().model(model::Liveness::kDeadButForSignal);
  model.processes[1].is_core = true;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
}

TEST(PythonLockOrphaned, IsOnlyLikelyWithoutTheProof) {
  const auto findings = diagnose(Scene().model(model::Liveness::kAwake));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
}

TEST(PythonLockOrphaned, WorksWithoutStacksOfPython) {
  LockTrace scene(kPythonLock);
  scene.touch(trace::TouchKind::kLock);
  model::Model model = read_model(scene.trace);
  put_interpreter_below(model);
  model.processes[1].liveness = model::Liveness::kDead;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "python-lock-orphaned");
  EXPECT_FALSE(findings[0].culprit.is_at_fork);
  EXPECT_EQ(findings[0].summary,
            "child 2000 (app) hangs, acquiring a lock of Python: the lock was held by thread 1001 \"worker\" when "
            "process 1000 forked");
}

// The kind of a PyMutex shows that it is a lock of Python, whatever names are on the stack. In this model, the fork and
// the lock were seen from outside.
TEST(PythonLockOrphaned, RecognisesAPyMutexByItsKind) {
  model::Model model = Scene().model();
  model.touches[0].stack.frames.erase(model.touches[0].stack.frames.begin(), model.touches[0].stack.frames.begin() + 2);
  const std::size_t held = *model.touches[0].held;
  model::Fork& fork = model.forks[model.touches[0].fork];
  model.locks[fork.held[held].lock].kind = model::LockKind::kPython;
  fork.is_inferred = true;
  auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "python-lock-orphaned");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].cause, Certainty::kProven) << "the lock names its owner";
  const auto says = [&](std::string_view text) {
    return std::ranges::any_of(findings[0].chain,
                               [&](const std::string& one) { return one.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says("names that thread as its owner"));
  EXPECT_EQ(findings[0].culprit.name.find("semaphore"), std::string::npos) << findings[0].culprit.name;
  for (const Fix& fix : findings[0].fixes)
    EXPECT_EQ(fix.text.find("--on-orphan"), std::string::npos) << "the shim does not see such a lock: " << fix.text;
  fork.is_parent_supposed = true;
  findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].cause, Certainty::kLikely) << "a core only supposes who the parent was";
  EXPECT_TRUE(says("names that thread as its owner"));
  EXPECT_FALSE(says("does not record its holder"));
  fork.is_parent_supposed = false;
  for (model::Thread& thread : model.threads) {
    if (thread.tid == test::kHolder) thread.tid = 0;
  }
  findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].cause, Certainty::kLikely) << "the lock does not name its owner";
  EXPECT_TRUE(says("does not record its holder"));
  EXPECT_TRUE(says("Probably another thread of"));
  EXPECT_NE(findings[0].summary.find("the lock was probably held by another thread"), std::string::npos);
  fork.held[held].may_have_been_free = true;
  findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].cause, Certainty::kPossible) << "perhaps the child took the lock itself";
  EXPECT_TRUE(says("the lock is free now"));
  EXPECT_FALSE(says("At the fork the lock was held"));
  EXPECT_NE(findings[0].summary.find("perhaps another thread held it"), std::string::npos) << findings[0].summary;
  EXPECT_FALSE(findings[0].culprit.holder);
}

// If it is not proven that another thread held the lock, the child may have taken the lock itself, and may wait for
// Ctrl-C. Python's own handler then counts, too.
TEST(PythonLockOrphaned, IsOnlyLikelyIfItsCauseIsNotProvenAndCtrlCEndsTheWait) {
  model::Model model = Scene().model(model::Liveness::kDeadButForSignal);
  model::Fork& fork = model.forks[model.touches[0].fork];
  fork.is_inferred = true;
  for (model::Thread& thread : model.threads) {
    if (thread.tid == test::kHolder) thread.tid = 0;
  }
  const auto harm_of = [&](Certainty cause) {
    const auto findings = diagnose(model);
    if (findings.size() != 1) return Certainty::kUnknown;
    EXPECT_EQ(findings[0].rule, "python-lock-orphaned");
    EXPECT_EQ(findings[0].cause, cause);
    EXPECT_TRUE(std::ranges::any_of(findings[0].fixes, [](const Fix& fix) {
      return fix.text.find("whether the child took the lock itself") != std::string::npos;
    }));
    return findings[0].harm;
  };
  EXPECT_EQ(harm_of(Certainty::kLikely), Certainty::kLikely);
  fork.held[*model.touches[0].held].may_have_been_free = true;
  EXPECT_EQ(harm_of(Certainty::kPossible), Certainty::kLikely);
  model.processes[1].liveness = model::Liveness::kDead;
  EXPECT_EQ(harm_of(Certainty::kPossible), Certainty::kProven) << "no signal has a handler";
}

// A stack of a stripped interpreter has no frame with the name _PyEval_EvalFrameDefault. In such a stack, the lines of
// Python come before the interpreter's own frames.
TEST(PythonLockOrphaned, IsKnownWithoutTheNamesOfTheInterpretersFunctions) {
  const auto rule_with = [](std::initializer_list<const char*> native) {
    model::Model model = Scene().model();
    auto& frames = model.touches[0].stack.frames;
    std::erase_if(frames, [](const model::Frame& frame) { return !frame.python; });
    const auto lines = frames;
    frames = test::make_stack({"sem_wait libc.so.6"}).frames;
    frames.insert(frames.end(), lines.begin(), lines.end());
    const auto rest = test::make_stack(native);
    frames.insert(frames.end(), rest.frames.begin(), rest.frames.end());
    const auto findings = diagnose(model);
    return findings.size() == 1 ? findings[0].rule : std::to_string(findings.size()) + " findings";
  };
  EXPECT_EQ(rule_with({"? python3.14", "main python3.14"}), "python-lock-orphaned");
  EXPECT_EQ(rule_with({"? libpython3.14.so.1.0"}), "python-lock-orphaned");
  // The semaphore belongs to an extension module, or to a program that is not Python.
  EXPECT_EQ(rule_with({"acquire _ring.cpython-314-x86_64-linux-gnu.so", "? python3.14"}), "orphaned-semaphore");
  EXPECT_EQ(rule_with({"main server"}), "orphaned-semaphore");
  EXPECT_EQ(rule_with({}), "orphaned-semaphore");
}

// The lock of a SimpleQueue is taken while the queue is empty. The thread that took it waited for an item, too, and was
// not going to release it. So the child waits for an item, and no thread held a lock at the fork.
TEST(PythonLockOrphaned, IsNoWaitForAnItemOfASimpleQueue) {
  const auto rules_with = [](std::initializer_list<const char*> native, model::Liveness liveness) {
    model::Model model = Scene().model(liveness);
    model.processes[1].waits = {test::futex_wait(test::kChild)};
    auto& frames = model.touches[0].stack.frames;
    frames.erase(frames.begin(), frames.begin() + 2);
    const auto inner = test::make_stack(native);
    frames.insert(frames.begin(), inner.frames.begin(), inner.frames.end());
    std::string rules;
    for (const Finding& finding : diagnose(model)) {
      rules += finding.rule;
      EXPECT_EQ(finding.cause, Certainty::kPossible) << finding.summary;
      EXPECT_EQ(finding.harm == Certainty::kProven, liveness == model::Liveness::kDead) << finding.summary;
    }
    return rules;
  };
  for (const auto liveness : {model::Liveness::kDead, model::Liveness::kDeadButForSignal}) {
    EXPECT_EQ(rules_with({"__new_sem_wait libc.so.6", "PyThread_acquire_lock_timed libpython3.11.so.1.0",
                          "_queue_SimpleQueue_get _queue.cpython-311-x86_64-linux-gnu.so"},
                         liveness),
              "lost-wakeup");
    EXPECT_EQ(rules_with({"__new_sem_wait libc.so.6", "PyThread_acquire_lock_timed python3.11",
                          "_queue_SimpleQueue_get_impl python3.11"},
                         liveness),
              "lost-wakeup");
  }
}

// A thread takes its own lock when it begins, and the lock is released when the thread ends.
TEST(PythonLockOrphaned, IsNoWaitForTheEndOfAThread) {
  constexpr std::string_view kJoins =
      "Stack (most recent call first):\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 1132 in _wait_for_tstate_lock\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 1112 in join\n"
      "  File \"/app/train.py\", line 51 in <module>\n";
  model::Model model = Scene(kJoins).model();
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lost-wakeup");
  EXPECT_EQ(findings[0].cause, Certainty::kPossible);
}

TEST(PythonLockOrphaned, SaysWhatTheUserCalled) {
  const auto summary_of = [](std::string_view file, std::string_view function) {
    const std::string text =
        "Stack (most recent call first):\n  File \"/usr/lib/python3.11/threading.py\", line 2 in wait\n"
        "  File \"" +
        std::string(file) + "\", line 1 in " + std::string(function) +
        "\n  File \"/usr/lib/python3/dist-packages/app/w.py\", line 12 in f\n";
    return diagnose(Scene(text).model()).at(0).summary;
  };
  EXPECT_NE(summary_of("/usr/lib/python3.11/concurrent/futures/thread.py", "submit")
                .find(" at w.py:12 in ThreadPoolExecutor.submit:"),
            std::string::npos);
  EXPECT_NE(summary_of("<frozen importlib._bootstrap>", "_find_and_load").find(" at w.py:12 in import:"),
            std::string::npos);
  EXPECT_NE(summary_of("/usr/lib/python3.11/logging/__init__.py", "acquire").find(" in logging.acquire:"),
            std::string::npos);
}

TEST(PythonLockOrphaned, IsSilentIfASignalInterruptedTheWait) {
  Scene scene;
  scene.trace.end(scene.touch, -1);
  EXPECT_TRUE(diagnose(scene.model(model::Liveness::kAwake)).empty());
}

TEST(PythonLockOrphaned, IsAnErrorIfItTimesOut) {
  LockTrace scene(kPythonLock);
  scene.end(scene.touch(trace::TouchKind::kLock, trace::kTouchTimed), -1);
  model::Model model = read_model(scene.trace);
  put_interpreter_below(model);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kError);
  EXPECT_NE(findings[0].summary.find("gave up"), std::string::npos) << findings[0].summary;
}

// A dead child without a touch. The trace has the Python stacks of the child and of its lost thread.
model::Model dead_with_python_stacks(std::string_view child, std::string_view partner,
                                     std::string_view other_thread = "") {
  LockTrace scene(kPythonLock);
  scene.trace.exe("/usr/bin/python3.11", std::string_view("python3\0-m\0app\0", 15));
  const auto thread = [](std::int32_t tid, std::string_view frames) {
    std::ostringstream text;
    text << "Thread 0x" << std::hex << test::TraceBuilder::pointer_of(tid) << " (most recent call first):\n" << frames;
    return text.str();
  };
  scene.trace.as(test::kParent);
  const auto python = scene.trace.python(trace::PythonMoment::kFork, thread(test::kHolder, partner), test::kParent);
  scene.trace.record(trace::RecordType::kPythonAtFork, trace::PythonAtForkRecord{scene.fork, python});
  std::string text = thread(test::kParent, child);  // the child's thread has the thread pointer of the forking thread
  if (!other_thread.empty()) text += thread(77, other_thread);
  scene.trace.as(test::kChild).python(trace::PythonMoment::kRequest, text, test::kParent);
  model::Model model = read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  return model;
}

constexpr std::string_view kResult =
    "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
    "  File \"/usr/lib/python3.11/concurrent/futures/_base.py\", line 451 in result\n"
    "  File \"/app/a.py\", line 7 in ask\n";
constexpr std::string_view kWorker =
    "  File \"/usr/lib/python3.11/concurrent/futures/thread.py\", line 81 in _worker\n";
constexpr std::string_view kImporting =
    "  File \"/app/plugin.py\", line 3 in <module>\n  File \"<frozen importlib._bootstrap>\", line 690 in "
    "_load_unlocked\n";
constexpr std::string_view kImports =
    "  File \"<frozen importlib._bootstrap>\", line 120 in acquire\n  File \"/app/a.py\", line 7 in ask\n";
constexpr std::string_view kGets =
    "  File \"/usr/lib/python3.11/multiprocessing/queues.py\", line 103 in get\n  File \"/app/a.py\", line 7 in ask\n";
constexpr std::string_view kFeeds = "  File \"/usr/lib/python3.11/multiprocessing/queues.py\", line 231 in _feed\n";

TEST(PythonWaits, AreRecognisedByTheFunctionsOfTheChildAndTheLostThread) {
  struct Pair {
    std::string_view child, partner;
    const char* slug;
    Certainty certainty;
  };
  for (const Pair& pair : {Pair{kResult, kWorker, "lost-wakeup", Certainty::kLikely},
                           Pair{kImports, kImporting, "python-lock-orphaned", Certainty::kProven},
                           Pair{kGets, kFeeds, "lost-feeder-thread", Certainty::kLikely},
                           Pair{kResult, kFeeds, "lost-wakeup", Certainty::kLikely},
                           Pair{kGets, kWorker, "lost-wakeup", Certainty::kLikely}}) {
    const auto findings = diagnose(dead_with_python_stacks(pair.child, pair.partner));
    ASSERT_EQ(findings.size(), 1U) << pair.slug;
    EXPECT_EQ(findings[0].rule, pair.slug);
    EXPECT_EQ(findings[0].harm, pair.certainty) << findings[0].summary;
    EXPECT_EQ(findings[0].summary.find("child 2000 (python3 -m app) hangs at a.py:7 in "), 0U) << findings[0].summary;
    EXPECT_EQ(findings[0].stack.frames.back().function, "ask");
  }
}

// Ctrl-C ends the wait for a result by an exception, and the program may go on then.
TEST(PythonWaits, ForAResultAreProvenOnlyIfCtrlCDoesNotEndThem) {
  model::Model model = dead_with_python_stacks(kResult, kWorker);
  EXPECT_EQ(diagnose(model).at(0).harm, Certainty::kLikely);
  model.processes[1].liveness = model::Liveness::kDead;
  EXPECT_EQ(diagnose(model).at(0).harm, Certainty::kProven);
}

// Any thread may set the result of a future. Only map() of an executor shows that a worker was to set it.
TEST(PythonWaits, ForAResultArePossiblyDueToALostWorkerUnlessTheyAreInMap) {
  const Finding other = diagnose(dead_with_python_stacks(kResult, kWorker)).at(0);
  EXPECT_EQ(other.cause, Certainty::kPossible);
  model::Model has_handler = dead_with_python_stacks(kResult, kWorker);
  has_handler.processes[1].ways_out = {"a handler of SIGTERM"};
  EXPECT_TRUE(diagnose(has_handler).empty()) << "the handler may set the result";
  EXPECT_NE(other.summary.find(": perhaps thread 1001, a worker of a ThreadPoolExecutor, was to set the result"),
            std::string::npos)
      << other.summary;
  constexpr std::string_view kMaps =
      "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
      "  File \"/usr/lib/python3.11/concurrent/futures/_base.py\", line 451 in result\n"
      "  File \"/usr/lib/python3.11/concurrent/futures/_base.py\", line 619 in result_iterator\n"
      "  File \"/app/a.py\", line 7 in ask\n";
  const Finding map = diagnose(dead_with_python_stacks(kMaps, kWorker)).at(0);
  EXPECT_EQ(map.cause, Certainty::kLikely);
  EXPECT_EQ(map.summary.find("perhaps"), std::string::npos) << map.summary;
}

// asyncio.run_coroutine_threadsafe() returns a future. The event loop in another thread sets its result.
TEST(PythonWaits, ForAResultNameALostEventLoop) {
  constexpr std::string_view kRunsLoop =
      "  File \"/usr/lib/python3.11/selectors.py\", line 468 in select\n"
      "  File \"/usr/lib/python3.11/asyncio/base_events.py\", line 1871 in _run_once\n"
      "  File \"/usr/lib/python3.11/asyncio/base_events.py\", line 607 in run_forever\n";
  const Finding found = diagnose(dead_with_python_stacks(kResult, kRunsLoop)).at(0);
  EXPECT_EQ(found.rule, "lost-wakeup");
  EXPECT_EQ(found.cause, Certainty::kPossible);
  EXPECT_NE(found.summary.find(": perhaps thread 1001, which runs an event loop of asyncio"), std::string::npos)
      << found.summary;
}

// A program that calls os.fork() itself has no start method to change.
TEST(PythonWaits, AdviseToStartTheLostThreadInTheChild) {
  const auto is_about_thread = [](const Fix& fix) { return fix.text.find("start it again there") != std::string::npos; };
  const auto unknown = diagnose(dead_with_python_stacks(kResult, kFeeds));
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_TRUE(std::ranges::any_of(unknown[0].fixes, is_about_thread));
  // If the lost thread was a worker of an executor, the advice is to make the executor in the child.
  const auto executor = diagnose(dead_with_python_stacks(kResult, kWorker));
  ASSERT_EQ(executor.size(), 1U);
  EXPECT_FALSE(std::ranges::any_of(executor[0].fixes, is_about_thread));
}

TEST(PythonWaits, OfAnImportAndItsLockAreOneFinding) {
  model::Model model = dead_with_python_stacks(kImports, kImporting);
  model::Touch touch;
  touch.process = 1;
  touch.tid = test::kChild;
  touch.held = 0;
  touch.stack = test::make_stack({"__new_sem_wait libc.so.6", "PyThread_acquire_lock_timed python3.11"});
  ASSERT_FALSE(model.forks[0].held.empty());
  model.touches.push_back(touch);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("in import"), std::string::npos) << findings[0].summary;
}

TEST(PythonWaits, AreNotBlamedOnALostThreadIfTheChildHasOneLikeIt) {
  const auto findings = diagnose(dead_with_python_stacks(kResult, kWorker, kWorker));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely) << findings[0].summary;
}

TEST(PythonWaits, AreSilentWhileTheChildIsAwake) {
  for (const auto& [child, partner] :
       {std::pair(kResult, kWorker), std::pair(kImports, kImporting), std::pair(kGets, kFeeds)}) {
    model::Model model = dead_with_python_stacks(child, partner);
    model.processes[1].liveness = model::Liveness::kAwake;
    EXPECT_TRUE(diagnose(model).empty());
  }
}

}  // namespace
}  // namespace forksight
