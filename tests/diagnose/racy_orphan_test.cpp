// Tests the rule about locks that a child could take only because no thread happened to hold them at the fork.
#include <gtest/gtest.h>

#include <map>

#include "diagnose/diagnose.hpp"
#include "diagnose/odds.hpp"
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

TEST(RacyOrphan, IsPossibleAndSaysTheOdds) {
  RacyTrace scene;
  scene.touch(31, 1000);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "racy-orphan");
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_NE(findings[0].summary.find("hold it 3.1 % of the time, so 0.9 % to 7.1 % of such forks hang"),
            std::string::npos)
      << findings[0].summary;
  ASSERT_TRUE(findings[0].odds);
  EXPECT_NEAR(findings[0].odds->low, 0.0092, 0.0001);
  EXPECT_NEAR(findings[0].odds->high, 0.069, 0.001);
  EXPECT_NE(findings[0].chain[1].find("\"worker\" and 1 thread more"), std::string::npos) << findings[0].chain[1];
  EXPECT_NE(findings[0].chain[2].find("7 times and held it 3.1 % of the 2.0 s"), std::string::npos)
      << findings[0].chain[2];
  ASSERT_TRUE(findings[0].culprit.holder);
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
}

TEST(RacyOrphan, SaysTheShareOfTheTimeAndTheRangeOfTheOdds) {
  const std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> cases{
      {{500, 1000}, "50 % of the time, so 22 % to 72 % of such forks hang"},
      {{1, 1'000'000}, "0.0001 % of the time, so 2.8e-05 % to 0.00024 % of such forks hang"},
      {{5000, 1000}, "0 of 1 fork found it taken, so at most 81 % of such forks hang"},
  };
  for (const auto& [ticks, words] : cases) {
    RacyTrace scene;
    scene.touch(ticks.first, ticks.second);
    ASSERT_EQ(scene.findings().size(), 1U);
    EXPECT_NE(scene.findings()[0].summary.find(words), std::string::npos) << scene.findings()[0].summary;
  }
}

TEST(RacyOrphan, IsSilentIfATimeIsZero) {
  RacyTrace scene;
  scene.touch(0, 1000);
  scene.touch(10, 0);
  EXPECT_TRUE(scene.findings().empty());
}

TEST(RacyOrphan, IsNotReportedBesideAHangAtTheSameLock) {
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

// --- the odds

// A process that forks once a second. The time from the start to each fork is divided into ten slices. `share_at` gets
// the middle of a slice, in seconds. It returns the share of the slice in which another thread holds a lock.
struct Forks {
  Forks(std::size_t count, double (*share_at)(double)) {
    model.processes.emplace_back();
    model.threads.resize(2);
    model.locks.emplace_back().address = test::kLockAddress;
    for (std::size_t second = 1; second <= count; ++second) {
      model::Fork fork;
      fork.lost_threads = {1};
      model.forks.push_back(fork);
      model::RacyTouch touch;
      touch.fork = second - 1;
      touch.window_ns = second * 1'000'000'000;
      touch.times = 100 * second;
      constexpr std::size_t kSlices = 10;
      for (std::size_t i = 0; i < kSlices; ++i) {
        const double middle = (static_cast<double>(i) + 0.5) * static_cast<double>(second) / kSlices;
        touch.slices.push_back({share_at(middle) / kSlices, 1.0 / kSlices});
        touch.share += touch.slices.back().held;
      }
      model.racy_touches.push_back(touch);
    }
  }

  void mark_taken(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) model.forks[i].held.emplace_back().holder = 1;
  }
  odds::Odds odds() const { return odds::Table(model).of(model.racy_touches.front()); }

  model::Model model;
};

TEST(Odds, UseOnlyTheTimeInWhichForksHappen) {
  const odds::Odds steady = Forks(20, [](double) { return 0.05; }).odds();
  EXPECT_NEAR(steady.share, 0.05, 0.001);
  EXPECT_LT(steady.range.low, 0.05);
  EXPECT_GT(steady.range.low, 0.02);
  EXPECT_GT(steady.range.high, 0.05);
  EXPECT_LT(steady.range.high, 0.1);
  EXPECT_FALSE(steady.is_by_forks);
  const odds::Odds late = Forks(20, [](double at) { return at < 0.5 ? 0.9 : 0.02; }).odds();
  EXPECT_LT(late.range.high, 0.1);
  EXPECT_LT(late.range.low, 0.02);
}

TEST(Odds, SayThatABurstEndedBeforeTheForks) {
  const auto burst = [](double at) { return at < 0.7 ? 0.9 : 0.0; };
  EXPECT_TRUE(Forks(20, burst).odds().is_over);
  EXPECT_TRUE(Forks(8, burst).odds().is_over);
  const odds::Odds few = Forks(2, burst).odds();
  EXPECT_FALSE(few.is_over);
  EXPECT_EQ(few.range.low, 0);
  EXPECT_GT(few.range.high, 0.1);
  Forks taken(20, burst);
  taken.mark_taken(2);
  EXPECT_FALSE(taken.odds().is_over);
  EXPECT_TRUE(taken.odds().is_by_forks);
}

TEST(Odds, UseTheForksIfTheseContradictTheTime) {
  const auto half = [](double) { return 0.5; };
  const odds::Odds never = Forks(40, half).odds();
  EXPECT_TRUE(never.is_by_forks);
  EXPECT_EQ(never.range.low, 0);
  EXPECT_LT(never.range.high, 0.1);
  Forks often(40, half);
  often.mark_taken(36);
  EXPECT_TRUE(often.odds().is_by_forks);
  EXPECT_GT(often.odds().range.low, 0.7);
  Forks fits(40, half);
  fits.mark_taken(18);
  EXPECT_FALSE(fits.odds().is_by_forks);
  // If records are missing, the counts of forks are not used.
  Forks gaps(40, half);
  gaps.model.processes[0].has_gaps = true;
  EXPECT_FALSE(gaps.odds().is_by_forks);
  EXPECT_EQ(gaps.odds().forks, 0U);
}

TEST(Odds, AreWiderForASingleFork) {
  const odds::Odds one = Forks(1, [](double at) { return at < 0.5 ? 0.2 : 0.1; }).odds();
  EXPECT_LT(one.range.low, 0.08);
  EXPECT_GT(one.range.high, 0.2);
}

TEST(Odds, TheWilsonIntervalIsKnownForAFewTries) {
  EXPECT_EQ(odds::wilson_interval(0, 10).low, 0);
  EXPECT_NEAR(odds::wilson_interval(0, 10).high, 0.2775, 0.0005);
  EXPECT_NEAR(odds::wilson_interval(5, 10).low, 0.2366, 0.0005);
  EXPECT_NEAR(odds::wilson_interval(5, 10).high, 0.7634, 0.0005);
  EXPECT_EQ(odds::wilson_interval(10, 10).high, 1);
}

}  // namespace
}  // namespace forksight
