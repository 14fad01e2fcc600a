// Tests the rule about children that wait for the signal of a timer. A fork does not copy timers, so only the parent
// has the timer.
#include <gtest/gtest.h>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::TraceBuilder;
using trace::RecordType;

constexpr std::uint64_t kAlarm = 1U << 13U;
constexpr std::uint64_t kUser1 = 1U << 9U;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

// A parent with one thread has a timer that will send the signal `armed`. Then the parent forks. Its child waits for
// `signals`.
struct TimerTrace {
  explicit TimerTrace(std::uint64_t signals = kAlarm, std::int32_t armed = 14) {
    trace.as(test::kParent);
    trace::ForkRecord fixed{};
    fixed.ordinal = 1;
    fork = trace.fork(fixed, {}, {});
    trace.record(RecordType::kTimer, trace::TimerRecord{fork, trace::TimerKind::kReal, armed,
                                                        1500 * (kNsPerSecond / 1000), 2 * kNsPerSecond});
    trace.record(RecordType::kForked, trace::ForkedRecord{fork, test::kChild, 0, 5});
    trace.as(test::kChild);
    touch =
        trace.record(RecordType::kTouch, trace::TouchRecord{fork, trace::TouchKind::kTimerWait,
                                                            trace::TouchAction::kNone, 0, 0, signals, 0, 0, 0, 0, 0});
  }

  model::Model model() const { return test::read_model(trace); }

  TraceBuilder trace;
  std::uint64_t fork = 0;
  std::uint64_t touch = 0;
};

TEST(TimerLost, IsLikelyForAnAlarm) {
  const auto findings = diagnose(TimerTrace().model());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "timer-lost");
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_EQ(findings[0].culprit.kind, CulpritKind::kTimer);
  EXPECT_EQ(findings[0].culprit.name, "the timer that sends SIGALRM");
  EXPECT_EQ(findings[0].process, 1U);
  ASSERT_GE(findings[0].chain.size(), 2U);
  EXPECT_NE(findings[0].chain[1].find("1.5 s later, every 2.0 s"), std::string::npos) << findings[0].chain[1];
}

TEST(TimerLost, IsPossibleForASignalThatProcessesMayAlsoSend) {
  const auto findings = diagnose(TimerTrace(kUser1, 10).model());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  const auto both = diagnose(TimerTrace(kAlarm | kUser1, 10).model());
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(both[0].harm, Certainty::kPossible);
}

TEST(TimerLost, IsSilentIfTheWaitReturned) {
  TimerTrace scene;
  scene.trace.record(RecordType::kTouchEnd, trace::TouchEndRecord{scene.touch, 0, 0});
  EXPECT_TRUE(diagnose(scene.model()).empty());
}

TEST(TimerLost, IsSilentIfNoTimerSendsTheSignalOrAfterAnExec) {
  EXPECT_TRUE(diagnose(TimerTrace(kUser1, 14).model()).empty());
  model::Model execed = TimerTrace().model();
  execed.processes[1].has_execed = true;
  EXPECT_TRUE(diagnose(execed).empty());
}

TEST(TimerLost, TimersWithInvalidSignalNumbersAreIgnored) {
  EXPECT_TRUE(TimerTrace(kAlarm, 0).model().forks[0].timers.empty());
  EXPECT_TRUE(TimerTrace(kAlarm, 65).model().forks[0].timers.empty());
}

}  // namespace
}  // namespace forksight
