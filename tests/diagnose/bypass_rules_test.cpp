// Tests the rules about forks that skip the atfork handlers, forks in a signal handler, and children that call exit().
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::LibcTrace;
using test::make_stack;
using test::read_model;

constexpr std::uint64_t kTimeZoneLock = trace::bit_of(trace::LibcLock::kTimeZone);
constexpr std::uint64_t kStreamLock = 0x7f00'0000'4a70;

void prove_dead(model::Model& model, std::uint64_t futex = kStreamLock) {
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1400;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  model.processes[1].waits[0].object = futex;
}

model::Model bypassed(bool with_stream) {
  LibcTrace scene({"localtime", kTimeZoneLock});
  scene.trace.as(test::kChild);
  if (with_stream) {
    scene.trace.record(trace::RecordType::kStream, trace::StreamRecord{scene.fork, scene.other, kStreamLock, 1, 0});
  }
  model::Model model = read_model(scene.trace);
  model.forks[0].bypassed = true;
  return model;
}

TEST(AtforkBypassed, IsCertainIfTheChildWaitsForTheLockOfAStream) {
  model::Model model = bypassed(true);
  prove_dead(model);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-bypassed");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].culprit.name, "the lock of stdout");
  ASSERT_TRUE(findings[0].culprit.holder.has_value());
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
}

TEST(AtforkBypassed, IsLikelyIfTheChildWaitsForAnotherFutex) {
  model::Model model = bypassed(true);
  prove_dead(model, 0x1000);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "atfork-bypassed");
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
}

TEST(AtforkBypassed, NamesTheCall) {
  const std::pair<std::uint32_t, const char*> calls[] = {
      {0, "_Fork()"},
      {trace::kForkByClone, "clone()"},
      {trace::kForkBySyscall, "syscall(SYS_fork)"},
      {trace::kForkBySyscall | trace::kForkByClone, "syscall(SYS_clone)"}};
  for (const auto& [flags, name] : calls) {
    test::TraceBuilder trace;
    trace.as(test::kParent);
    trace::ForkRecord fixed{};
    fixed.ordinal = 1;
    fixed.flags = trace::kForkBypassed | flags;
    const auto fork = trace.fork(fixed, {trace.thread(test::kHolder, "worker", test::kParent)}, {});
    trace.record(trace::RecordType::kForked, trace::ForkedRecord{fork, test::kChild, 0, 5});
    model::Model model = read_model(trace);
    prove_dead(model);
    const auto findings = diagnose(model);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].rule, "atfork-bypassed");
    EXPECT_NE(findings[0].summary.find(std::string("made by ") + name), std::string::npos) << findings[0].summary;
  }
}

TEST(AtforkBypassed, IsSilentIfTheChildDoesNotHang) { EXPECT_TRUE(diagnose(bypassed(true)).empty()); }

TEST(AtforkBypassed, LeavesATouchToTheRuleOfItsLock) {
  LibcTrace scene({"localtime", kTimeZoneLock});
  scene.touch({"localtime", kTimeZoneLock});
  model::Model model = read_model(scene.trace);
  model.forks[0].bypassed = true;
  prove_dead(model);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "libc-lock-in-flight");
}

model::Stack handler_stack() {
  model::Stack stack = make_stack({"on_signal app.c:10", "? libc.so.6", "main app.c:20"});
  stack.frames[1].function = model::kSignalFrame;
  return stack;
}

TEST(ForkInSignalHandler, IsCertainIfTheInterruptedCallHoldsTheLock) {
  LibcTrace scene({"localtime", kTimeZoneLock});
  scene.touch({"localtime", kTimeZoneLock});
  model::Model model = read_model(scene.trace);
  model.forks[0].stack = handler_stack();
  model.forks[0].calls[0].by_forking_thread = true;
  prove_dead(model);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "fork-in-signal-handler");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
}

TEST(ForkInSignalHandler, IsLikelyWithoutATouch) {
  model::Model model = read_model(LibcTrace({"localtime", kTimeZoneLock}).trace);
  model.forks[0].stack = handler_stack();
  prove_dead(model);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "fork-in-signal-handler");
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  ASSERT_FALSE(findings[0].culprit.stack.frames.empty());
  EXPECT_EQ(findings[0].culprit.stack.frames[0].function, "main");
}

TEST(ForkInSignalHandler, IsSilentIfTheChildDoesNotHang) {
  model::Model model = read_model(LibcTrace({"localtime", kTimeZoneLock}).trace);
  model.forks[0].stack = handler_stack();
  EXPECT_TRUE(diagnose(model).empty());
}

model::Model exited() {
  LibcTrace scene({"localtime", kTimeZoneLock});
  scene.trace.as(test::kChild);
  trace::TouchRecord touch{};
  touch.fork = scene.fork;
  touch.kind = trace::TouchKind::kExit;
  scene.trace.record(trace::RecordType::kTouch, touch);
  return read_model(scene.trace);
}

TEST(InheritedExitHandlers, AreCertainIfTheChildIsProvenToHang) {
  model::Model model = exited();
  prove_dead(model);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "inherited-exit-handlers");
  EXPECT_NE(findings[0].summary.find("without the 1 thread that fork() left behind"), std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
}

// At the fork, a lost thread was registering an exit handler. libc's list of exit handlers is therefore locked in the
// child.
TEST(InheritedExitHandlers, AreNotBlamedForTheLockOfTheirList) {
  const auto culprit_of = [](std::initializer_list<const char*> lines) {
    model::Model model = exited();
    prove_dead(model);
    model::Wait wait;
    wait.tid = model.touches.front().tid;
    wait.kind = model::WaitKind::kFutex;
    wait.stack = make_stack(lines);
    model.processes[1].waits = {wait};
    const auto findings = diagnose(model);
    EXPECT_EQ(findings.size(), 1U);
    return findings.empty() ? std::string() : findings[0].culprit.name;
  };
  EXPECT_EQ(culprit_of({"futex_wait futex.h:146", "__lll_lock_wait_private lll.c:34", "__run_exit_handlers exit.c:46",
                        "__GI_exit exit.c:143"}),
            "libc's list of exit handlers");
  EXPECT_EQ(
      culprit_of({"__lll_lock_wait lll.c:49", "lock_mutex mutex.c:9", "stop app.c:7", "__run_exit_handlers exit.c:46"}),
      "exit handlers of the parent");
}

TEST(ForkRules, AreSilentIfTheChildExeced) {
  for (const bool in_handler : {false, true}) {
    model::Model model = bypassed(true);
    if (in_handler)
      model.forks[0].stack = make_stack({"on_signal app.c:9", "<signal handler called>", "main app.c:30"});
    prove_dead(model);
    EXPECT_EQ(diagnose(model).size(), 1U);
    model.processes[1].has_execed = true;
    EXPECT_TRUE(diagnose(model).empty());
  }
}

TEST(InheritedExitHandlers, AreSilentIfTheChildEndedWithoutACrash) {
  for (const int status : {0, 3 << 8, SIGTERM, SIGKILL}) {
    model::Model model = exited();
    model.processes[1].liveness = model::Liveness::kEnded;
    model.processes[1].exit_status = status;
    EXPECT_TRUE(diagnose(model).empty()) << status;
  }
  EXPECT_TRUE(diagnose(exited()).empty()) << "how the child ended is not known";
}

TEST(InheritedExitHandlers, AreAnErrorIfTheChildCrashed) {
  model::Model model = exited();
  model.processes[1].liveness = model::Liveness::kEnded;
  model.processes[1].exit_status = SIGSEGV;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kError);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
}

}  // namespace
}  // namespace forksight
