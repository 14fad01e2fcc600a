// Tests the rules that guess (suspects). Their findings are possible or likely, never proven. The models contain what
// was seen from outside. Some models are of healthy programs that look similar.
#include <gtest/gtest.h>

#include <csignal>

#include "diagnose/diagnose.hpp"

namespace forksight {
namespace {

using model::EnderKind;
using model::WaitKind;

constexpr std::int32_t kReader = 100;
constexpr std::int32_t kSleeper = 101;
constexpr std::int32_t kBystander = 102;

model::Wait wait_of(std::int32_t tid, WaitKind kind) {
  model::Wait wait;
  wait.tid = tid;
  wait.name = "app";
  wait.kind = kind;
  wait.state = 'S';
  wait.for_ms = 5000;
  wait.are_enders_known = true;
  return wait;
}

model::Ender writer(std::int32_t pid) {
  model::Ender ender;
  ender.pid = pid;
  ender.fd = 5;
  ender.via = "pipe";
  ender.command = "app";
  ender.state = 'S';
  ender.may_have_written = false;
  return ender;
}

model::Ender other(EnderKind kind) {
  model::Ender ender;
  ender.kind = kind;
  ender.what = "somebody";
  return ender;
}

model::Process awake_process(std::int32_t pid, std::int32_t ppid, model::Wait wait) {
  model::Process process;
  process.pid = pid;
  process.ppid = ppid;
  process.exe = "/opt/app";
  process.liveness = model::Liveness::kAwake;
  process.waits = {std::move(wait)};
  return process;
}

// A process reads from a pipe. Before that, it waited for the end of a child. Another process sleeps, and has the only
// writing end.
model::Model held_open() {
  model::Wait reads = wait_of(kReader, WaitKind::kPipeRead);
  reads.path = "pipe:[7]";
  reads.fd = 3;
  reads.enders = {writer(kSleeper)};
  model::Model model;
  model.processes = {awake_process(kReader, 1, reads),
                     awake_process(kSleeper, kReader, wait_of(kSleeper, WaitKind::kSignal))};
  model.processes[0].has_reaped = true;
  return model;
}

model::Wait& reads(model::Model& model) { return model.processes[0].waits[0]; }

TEST(HeldOpenBySleeper, IsASuspect) {
  const auto findings = diagnose(held_open());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "pipe-held-open");
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_EQ(findings[0].cause, Certainty::kPossible);
  ASSERT_TRUE(findings[0].culprit.holder);
  EXPECT_EQ(findings[0].culprit.holder->pid, kSleeper);
  EXPECT_EQ(findings[0].tid, kReader);
}

TEST(HeldOpenBySleeper, HandlersOfTheReaderChangeNothing) {
  model::Model model = held_open();
  reads(model).enders.push_back(other(EnderKind::kSignal));
  EXPECT_EQ(diagnose(model).size(), 1U);
}

TEST(HeldOpenBySleeper, TheProcessThatEndedMayBeASibling) {
  model::Model model = held_open();
  model.processes[0].has_reaped = false;
  model.processes[0].ppid = kBystander;
  EXPECT_TRUE(diagnose(model).empty());
  model.processes.push_back(awake_process(kBystander, 1, wait_of(kBystander, WaitKind::kSleep)));
  EXPECT_TRUE(diagnose(model).empty());
  model.processes.back().zombies = {{103, "app", true}};
  EXPECT_EQ(diagnose(model).size(), 1U);
}

TEST(HeldOpenBySleeper, IsSilentIfNoRelatedProcessHasEnded) {
  model::Model model = held_open();
  model.processes[0].has_reaped = false;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(HeldOpenBySleeper, IsSilentIfTheSleeperMayHaveWritten) {
  model::Model model = held_open();
  reads(model).enders[0].may_have_written = true;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(HeldOpenBySleeper, IsSilentIfTheWriterRunsOrIsStoppedOrAZombie) {
  for (const char state : {'R', 'D', 'T', 'Z'}) {
    model::Model model = held_open();
    reads(model).enders[0].state = state;
    EXPECT_TRUE(diagnose(model).empty()) << state;
  }
}

TEST(HeldOpenBySleeper, IsSilentIfTheWritingEndIsAStandardStream) {
  model::Model model = held_open();
  reads(model).enders[0].fd = 1;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(HeldOpenBySleeper, IsSilentOfAWorkerThatWaitsForTheReader) {
  model::Model model = held_open();
  model.processes[1].waits[0].enders = {writer(kReader)};
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(HeldOpenBySleeper, IsSilentIfSomebodyElseCouldWrite) {
  model::Model model = held_open();
  reads(model).enders.push_back(writer(kBystander));  // nothing else is known about this process
  EXPECT_TRUE(diagnose(model).empty());
  model = held_open();
  reads(model).enders.push_back(other(EnderKind::kAnybody));
  EXPECT_TRUE(diagnose(model).empty());
  model = held_open();
  reads(model).enders.push_back(other(EnderKind::kTimer));
  EXPECT_TRUE(diagnose(model).empty());
  model = held_open();
  reads(model).enders[0].pid = kReader;  // the reader itself has the writing end
  EXPECT_TRUE(diagnose(model).empty());
}

model::Model opens_fifo() {
  model::Wait opens = wait_of(kReader, WaitKind::kFifoOpen);
  opens.path = "/tmp/fifo";
  opens.enders = {other(EnderKind::kAnybody)};
  model::Model model;
  model.processes = {awake_process(kReader, 1, opens)};
  return model;
}

TEST(FifoWithoutPeer, IsPossibleIfAChildHasEnded) {
  model::Model model = opens_fifo();
  model.processes[0].zombies = {{101, "app", true}};
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "fifo-without-peer");
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_NE(findings[0].summary.find("process 101"), std::string::npos);
}

TEST(FifoWithoutPeer, IsPossibleIfASiblingHasEnded) {
  model::Model model = opens_fifo();
  model.processes[0].ppid = kBystander;
  model.processes.push_back(awake_process(kBystander, 1, wait_of(kBystander, WaitKind::kWaitChild)));
  model.processes[1].zombies = {{101, "date", false}};  // it called exec, so it is another program
  EXPECT_TRUE(diagnose(model).empty());
  model.processes[1].zombies[0].is_fork = true;
  EXPECT_EQ(diagnose(model).size(), 1U);
  model.processes[1].exe = "/bin/sh";
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(FifoWithoutPeer, IsSilentIfAnotherThreadOfTheProgramMayOpenIt) {
  model::Model model = opens_fifo();
  model.processes[0].zombies = {{101, "app", true}};
  model.processes.push_back(awake_process(kBystander, 1, wait_of(kBystander, WaitKind::kWaitChild)));
  EXPECT_EQ(diagnose(model).size(), 1U);
  model.processes[1].waits[0].kind = WaitKind::kSleep;
  EXPECT_TRUE(diagnose(model).empty());
  model.processes[1].exe = "/bin/sh";
  EXPECT_EQ(diagnose(model).size(), 1U);
}

TEST(FifoWithoutPeer, IsLikelyIfTheNameWasRemoved) {
  model::Model model = opens_fifo();
  model.processes[0].waits[0].is_unlinked = true;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
}

TEST(FifoWithoutPeer, IsSilentIfNoRelatedProcessHasEndedAndTheNameExists) {
  EXPECT_TRUE(diagnose(opens_fifo()).empty());
}

model::Model waits_for_semaphore() {
  model::Wait takes = wait_of(kReader, WaitKind::kSemaphore);
  takes.semaphore = model::SemaphoreWait{7, 0, 0, -1, 99, true};
  model::Model model;
  model.processes = {awake_process(kReader, 1, takes)};
  return model;
}

TEST(SemaphoreAbandoned, IsPossibleIfTheLastUserHasEnded) {
  const auto findings = diagnose(waits_for_semaphore());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "semaphore-abandoned");
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_EQ(findings[0].culprit.name, "semaphore 0 of System V set 7");
}

TEST(SemaphoreAbandoned, IsOneFindingForAllThatWait) {
  model::Model model = waits_for_semaphore();
  model.processes.push_back(awake_process(kBystander, 1, model.processes[0].waits[0]));
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].processes.size(), 2U);
}

TEST(SemaphoreAbandoned, IsSilentIfTheWaitHasAnotherExplanation) {
  model::Model model = waits_for_semaphore();
  model::SemaphoreWait& semaphore = *model.processes[0].waits[0].semaphore;
  const model::SemaphoreWait abandoned = semaphore;
  semaphore.last_is_gone = false;
  EXPECT_TRUE(diagnose(model).empty());
  semaphore = abandoned;
  semaphore.value = 1;  // the process that ended has posted the semaphore
  semaphore.operation = -2;
  EXPECT_TRUE(diagnose(model).empty());
  semaphore = abandoned;
  semaphore.operation = 0;
  EXPECT_TRUE(diagnose(model).empty());
  semaphore = abandoned;
  model.processes[0].waits[0].has_timeout = true;
  EXPECT_TRUE(diagnose(model).empty());
}

model::Model pauses() {
  model::Wait sleeps = wait_of(kReader, WaitKind::kSignal);
  sleeps.woken_by = 1ULL << (SIGCHLD - 1);
  model::Model model;
  model.processes = {awake_process(kReader, 1, sleeps)};
  model.processes[0].zombies = {{101, "app", true}};
  return model;
}

TEST(ChildEndMissed, IsPossibleIfAChildIsAZombie) {
  const auto findings = diagnose(pauses());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "child-end-missed");
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
}

TEST(ChildEndMissed, IsSilentIfTheWaitHasAnotherExplanation) {
  model::Model model = pauses();
  model.processes[0].zombies.clear();
  EXPECT_TRUE(diagnose(model).empty());
  model = pauses();
  model.processes[0].waits[0].woken_by = 1ULL << (SIGTERM - 1);
  EXPECT_TRUE(diagnose(model).empty());
  model = pauses();
  model.processes[0].waits[0].for_ms = 3;  // the signal may still be on its way
  EXPECT_TRUE(diagnose(model).empty());
  model = pauses();
  model.processes[0].waits[0].has_timeout = true;
  EXPECT_TRUE(diagnose(model).empty());
}

}  // namespace
}  // namespace forksight
