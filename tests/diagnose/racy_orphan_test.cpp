// Locks that a child took by luck.
#include <gtest/gtest.h>

#include <map>

#include "diagnose/diagnose.hpp"
#include "forksight/trace/foresight.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::TraceBuilder;
using trace::LockKind;
using trace::RecordType;

struct RacyTrace {
  RacyTrace() {
    trace.as(test::kParent);
    holder = trace.thread(test::kHolder, "worker");
    trace::ForkRecord fixed{};
    fixed.ordinal = 1;
    fork = trace.fork(fixed, {holder}, {});
    trace.record(RecordType::kForked, trace::ForkedRecord{fork, test::kChild, 0, 5});
  }
  void touch(std::uint64_t held_ticks, std::uint64_t window_ticks, std::int32_t pid = test::kChild) {
    trace.as(pid);
    trace::RacyTouchRecord record{};
    record.fork = fork;
    record.lock = test::kLockAddress;
    record.holder = holder;
    record.held_ticks = held_ticks;
    record.window_ticks = window_ticks;
    record.window_ns = 2'000'000'000;
    record.times = 7;
    record.threads = 2;
    record.kind = static_cast<std::uint32_t>(LockKind::kMutex);
    trace.record(RecordType::kRacyTouch, record);
  }
  std::vector<Finding> findings() const { return diagnose(test::read_model(trace)); }
  TraceBuilder trace;
  std::uint64_t holder = 0;
  std::uint64_t fork = 0;
};

TEST(RacyOrphan, IsPossibleWithTheOdds) {
  RacyTrace scene;
  scene.touch(31, 1000);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "racy-orphan");
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_NE(findings[0].summary.find("hold it 3.1 % of the time, so about one fork in 32 hangs"), std::string::npos)
      << findings[0].summary;
  EXPECT_NE(findings[0].chain[1].find("\"worker\" and 1 thread more"), std::string::npos) << findings[0].chain[1];
  EXPECT_NE(findings[0].chain[2].find("7 times and had it 3.1 % of the 2.0 s"), std::string::npos)
      << findings[0].chain[2];
  ASSERT_TRUE(findings[0].culprit.holder);
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
}

TEST(RacyOrphan, ShareIsAShare) {
  const std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> cases{
      {{500, 1000}, "50 % of the time, so about one fork in 2 hangs"},
      {{5000, 1000}, "100 % of the time, so most forks hang"},
      {{1, 1'000'000}, "0.0001 % of the time, so about one fork in 1000000 hangs"},
  };
  for (const auto& [ticks, words] : cases) {
    RacyTrace scene;
    scene.touch(ticks.first, ticks.second);
    ASSERT_EQ(scene.findings().size(), 1U);
    EXPECT_NE(scene.findings()[0].summary.find(words), std::string::npos) << scene.findings()[0].summary;
  }
}

TEST(RacyOrphan, IsSilentWithoutATime) {
  RacyTrace scene;
  scene.touch(0, 1000);
  scene.touch(10, 0);
  EXPECT_TRUE(scene.findings().empty());
}

TEST(RacyOrphan, IsNotToldBesideAHangAtTheSameLock) {
  test::LockTrace hung{test::LockScene{}};
  hung.touch(trace::TouchKind::kLock);
  trace::RacyTouchRecord record{};
  record.fork = hung.fork;
  record.lock = test::kLockAddress;
  hung.trace.as(test::kParent);
  record.holder = hung.trace.thread(test::kHolder + 1, "other");
  record.held_ticks = 1;
  record.window_ticks = 2;
  record.kind = static_cast<std::uint32_t>(LockKind::kMutex);
  hung.trace.as(test::kChild);
  hung.trace.record(RecordType::kRacyTouch, record);
  const auto findings = diagnose(test::read_model(hung.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
}

}  // namespace
}  // namespace forksight
