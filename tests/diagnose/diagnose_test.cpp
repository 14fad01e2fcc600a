// Merging, order and fingerprints.
#include "diagnose/diagnose.hpp"

#include <gtest/gtest.h>

#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::LockTrace;
using test::read_into;

void decorate(model::Model& model, const char* place) {
  for (model::Touch& touch : model.touches) touch.stack = test::make_stack({"pthread_mutex_lock libc.so.6", place});
}

// Ranks of one job: other pids, other hosts, one cause.
model::Model ranks(int count) {
  model::Model model;
  for (int rank = 0; rank < count; ++rank) {
    LockTrace scene({}, 3000 + rank);
    scene.trace.host("node" + std::to_string(rank / 2)).rank(rank, count).creator(1000 + 7 * rank, 1, 77);
    scene.touch(trace::TouchKind::kLock);
    read_into(model, scene.trace);
  }
  decorate(model, "step train.c:7");
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
  decorate(other, "step train.c:1234");
  const auto first = diagnose(one);
  const auto second = diagnose(other);
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(first[0].fingerprint, second[0].fingerprint);
  decorate(other, "stride train.c:7");
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

}  // namespace
}  // namespace forksight
