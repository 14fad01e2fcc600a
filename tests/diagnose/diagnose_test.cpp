// Tests how findings are merged, how they are ordered, and how their fingerprints are computed.
#include "diagnose/diagnose.hpp"
#include "diagnose/fingerprint.hpp"

#include <gtest/gtest.h>

#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::LockTrace;
using test::read_into;

void set_touch_stacks(model::Model& model, const char* place) {
  for (model::Touch& touch : model.touches) touch.stack = test::make_stack({"pthread_mutex_lock libc.so.6", place});
}

// The ranks of one job. They have different pids and run on several hosts. One cause makes all of them hang.
model::Model ranks(int count) {
  model::Model model;
  for (int rank = 0; rank < count; ++rank) {
    LockTrace scene({}, 3000 + rank);
    scene.trace.host("node" + std::to_string(rank / 2)).rank(rank, count).creator(1000 + 7 * rank, 1, 77);
    scene.touch(trace::TouchKind::kLock);
    read_into(model, scene.trace);
  }
  set_touch_stacks(model, "step train.c:7");
  return model;
}

TEST(Diagnose, MergesOneCauseOfManyRanks) {
  const auto findings = diagnose(ranks(8));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].count, 8U);
  EXPECT_EQ(findings[0].processes.size(), 8U);
  EXPECT_EQ(findings[0].processes.front(), findings[0].process);
}

TEST(Diagnose, KeepsCausesApart) {
  model::Model model = ranks(2);
  model.touches[1].stack = test::make_stack({"pthread_mutex_lock libc.so.6", "other train.c:99"});
  EXPECT_EQ(diagnose(model).size(), 2U);
}

TEST(Diagnose, AFingerprintHasNoPidsAddressesOrLines) {
  model::Model one = ranks(1);
  model::Model other = ranks(3);
  other.touches.erase(other.touches.begin(), other.touches.begin() + 2);
  other.locks.back().address += 0x1000;
  set_touch_stacks(other, "step train.c:1234");
  const auto first = diagnose(one);
  const auto second = diagnose(other);
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(first[0].fingerprint, second[0].fingerprint);
  set_touch_stacks(other, "stride train.c:7");
  EXPECT_NE(diagnose(other)[0].fingerprint, first[0].fingerprint);
}

TEST(Diagnose, PutsCertainHangsFirst) {
  model::Model model;
  LockTrace cured({}, 3001);
  cured.end(cured.touch(trace::TouchKind::kLock, 0, trace::TouchAction::kRecovered), 0);
  read_into(model, cured.trace);
  LockTrace likely({.kind = trace::LockKind::kSemaphore, .memory = test::semaphore_memory(0)}, 3002);
  likely.touch(trace::TouchKind::kLock);
  read_into(model, likely.trace.host("node2"));
  LockTrace hang({}, 3003);
  hang.touch(trace::TouchKind::kLock);
  read_into(model, hang.trace.host("node3"));
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  EXPECT_EQ(findings[1].outcome, Outcome::kCured);
  EXPECT_EQ(findings[2].harm, Certainty::kLikely);
}

TEST(Diagnose, OneCauseKeepsItsFingerprintWhetherCuredOrNot) {
  model::Model model;
  LockTrace cured({}, 3001);
  cured.end(cured.touch(trace::TouchKind::kLock, 0, trace::TouchAction::kRecovered), 0);
  read_into(model, cured.trace);
  LockTrace hang({}, 3003);
  hang.touch(trace::TouchKind::kLock);
  read_into(model, hang.trace.host("node3"));
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].fingerprint, findings[1].fingerprint);
}

struct SampleFinding {
  model::Model model;
  Finding finding;

  SampleFinding() {
    model::Process& process = model.processes.emplace_back();
    process.exe = "/opt/a/app";
    finding.rule = "orphaned-mutex";
    finding.harm = Certainty::kProven;
    finding.culprit.name = "cache_mu (mutex)";
    finding.culprit.library = "/opt/a/libcache.so.1";
    finding.stack = test::make_stack({"step train.c:9"});
    finding.culprit.stack = test::make_stack({"hold train.c:20"});
  }
  std::string get_fingerprint() const { return fingerprint(model, finding); }
};

TEST(Fingerprint, TellsProgramsAndScriptsApart) {
  SampleFinding one;
  SampleFinding other;
  other.model.processes[0].exe = "/tmp/x7/app";
  EXPECT_EQ(other.get_fingerprint(), one.get_fingerprint()) << "the same program in another folder";
  other.model.processes[0].exe = "/opt/a/server";
  EXPECT_NE(other.get_fingerprint(), one.get_fingerprint());
  one.model.processes[0].exe = other.model.processes[0].exe = "/usr/bin/python3.11";
  one.model.processes[0].cmdline = {"python3", "-B", "/a/train.py", "7"};
  other.model.processes[0].cmdline = {"python3", "/tmp/x7/train.py", "8"};
  EXPECT_EQ(other.get_fingerprint(), one.get_fingerprint());
  other.model.processes[0].cmdline[1] = "/a/serve.py";
  EXPECT_NE(other.get_fingerprint(), one.get_fingerprint());
}

TEST(Fingerprint, IsTheSameForRunAndWhy) {
  const SampleFinding one;
  SampleFinding other;
  other.finding.culprit.name = "cache_mu (std::mutex)";
  other.finding.culprit.library = "/usr/lib/libcache.so.1.4.2";
  other.finding.culprit.stack = {};
  EXPECT_EQ(other.get_fingerprint(), one.get_fingerprint()) << "`why` does not know where the lock was taken";
  other.finding.culprit.name = "other_mu (mutex)";
  EXPECT_NE(other.get_fingerprint(), one.get_fingerprint());
}

TEST(Fingerprint, OfAPredictionIncludesThePlaceOfTheCulprit) {
  SampleFinding one;
  SampleFinding other;
  one.finding.harm = other.finding.harm = Certainty::kPossible;
  other.finding.culprit.stack = test::make_stack({"keep train.c:30"});
  EXPECT_NE(other.get_fingerprint(), one.get_fingerprint());
}

TEST(Fingerprint, LeavesOutFramesWithoutNames) {
  SampleFinding one;
  SampleFinding other;
  other.finding.stack.frames.insert(other.finding.stack.frames.begin(), model::Frame{})->module = "/usr/lib/libblas-r0.so";
  EXPECT_EQ(other.get_fingerprint(), one.get_fingerprint());
}

}  // namespace
}  // namespace forksight
