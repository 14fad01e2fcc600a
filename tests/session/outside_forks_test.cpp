// Tests that facts from the traces are added to a fork that was inferred from outside.
#include <gtest/gtest.h>

#include <algorithm>

#include "session/outside.hpp"

namespace forksight {
namespace {

constexpr std::int32_t kForkerPid = 1000;
constexpr std::int32_t kLoaderPid = 1001;
constexpr std::int32_t kForkedPid = 2000;
constexpr std::uint64_t kMainPointer = 0x7f00'0000'0700;
constexpr std::uint64_t kLoaderPointer = 0x7f00'0010'0700;
constexpr std::uint64_t kStartTicks = 77;

model::Stack line(const char* function, int number) {
  model::Stack stack;
  model::Frame& frame = stack.frames.emplace_back();
  frame.function = function;
  frame.file = "/app/train.py";
  frame.line = number;
  frame.python = true;
  return stack;
}

// A parent with two threads, and its child, which can never continue.
model::Model family() {
  model::Model model;
  model.processes.resize(2);
  model.processes[0].pid = kForkerPid;
  model.processes[1].pid = kForkedPid;
  model.processes[1].ppid = kForkerPid;
  for (model::Process& process : model.processes) {
    process.start_ticks = kStartTicks;
    process.exe = "/usr/bin/python3.14";
  }
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1000;
  model.threads.resize(2);
  model.threads[0].tid = kForkerPid;
  model.threads[0].is_main = true;
  model.threads[0].pointer = kMainPointer;
  model.threads[1].tid = kLoaderPid;
  model.threads[1].pointer = kLoaderPointer;
  model::Fork& fork = model.forks.emplace_back();
  fork.child = 1;
  fork.lost_threads = {1};
  return model;
}

// The model that an examination from outside makes. The lock names its holder, but nothing shows where the holder was
// at the fork.
model::Model seen_from_outside() {
  model::Model seen = family();
  model::Lock& lock = seen.locks.emplace_back();
  lock.kind = model::LockKind::kPython;
  lock.address = 0x5000;
  model::Held held;
  held.holder = 1;
  seen.forks[0].is_inferred = true;
  seen.forks[0].held.push_back(held);
  model::Touch& touch = seen.touches.emplace_back();
  touch.process = 1;
  touch.tid = kForkedPid;
  touch.held = 0;
  touch.stack = line("work", 40);
  return seen;
}

model::Model traced() {
  model::Model model = family();
  model.command = {"python3", "train.py"};
  model.forks[0].stack = line("main", 48);
  model.forks[0].python = 0;
  model.python.push_back({{kLoaderPointer, line("load", 34)}});
  return model;
}

std::vector<Finding> found(const model::Model& seen, model::Model run) {
  OutsideFindings outside;
  outside.keep(seen, run, {});
  std::vector<Finding> findings;
  outside.add_to(run, findings);
  return findings;
}

TEST(OutsideForks, HaveTheirStackAndThePythonLinesFromTheTraces) {
  const auto findings = found(seen_from_outside(), traced());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "python-lock-orphaned");
  ASSERT_EQ(findings[0].fork->stack.frames.size(), 1U);
  EXPECT_EQ(findings[0].fork->stack.frames[0].line, 48);
  ASSERT_EQ(findings[0].culprit.stack.frames.size(), 1U);
  EXPECT_EQ(findings[0].culprit.stack.frames[0].function, "load");
  EXPECT_TRUE(findings[0].culprit.is_at_fork);
}

// The look from outside takes a lost thread for the holder of a semaphore of Python. The shim records who takes
// semaphores, and which processes wait for a semaphore that a lost thread held.
TEST(OutsideForks, AreNoCauseOfAWaitForASemaphoreIfTheShimRecordedNoSuchWait) {
  model::Model seen = seen_from_outside();
  seen.locks[0].kind = model::LockKind::kSemaphore;
  model::Frame acquire;
  acquire.function = "PyThread_acquire_lock_timed";
  acquire.module = "/usr/bin/python3.11";
  auto& frames = seen.touches[0].stack.frames;
  frames.insert(frames.begin(), acquire);
  model::Model run = traced();
  EXPECT_TRUE(found(seen, run).empty()) << "no thread held the semaphore at the fork";
  // A lost thread held a semaphore at this address. The child has destroyed it, and made another one.
  run.locks = seen.locks;
  model::Held held;
  held.holder = 1;
  run.forks[0].held.push_back(held);
  EXPECT_TRUE(found(seen, run).empty());
  run.processes[1].has_gaps = true;
  ASSERT_EQ(found(seen, run).size(), 1U) << "the trace of the child is not complete";
  EXPECT_EQ(found(seen, run)[0].rule, "python-lock-orphaned");
}

TEST(OutsideForks, AreNotConfusedWithAForkOfAProcessWithTheSamePid) {
  model::Model run = traced();
  run.processes[0].start_ticks = kStartTicks - 1;
  const auto findings = found(seen_from_outside(), run);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_FALSE(findings[0].fork->stack.known());
  EXPECT_FALSE(findings[0].culprit.stack.known());
}

}  // namespace
}  // namespace forksight
