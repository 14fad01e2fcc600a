// Tests that the rules end when their time is used up, and that each rule has a share of it.
#include "diagnose/rule_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "dead_process.hpp"
#include "diagnose/diagnose.hpp"
#include "diagnose/wait_cycles.hpp"
#include "processor_time.hpp"

namespace forksight {
namespace {

using std::chrono::milliseconds;

// A thread that waits for a mutex that it holds.
model::Wait waits_for_itself(std::int32_t pid, std::int32_t tid) {
  model::Wait wait;
  wait.tid = tid;
  wait.kind = model::WaitKind::kFutex;
  wait.use = model::FutexUse::kMutex;
  wait.mutex_type = model::MutexType::kNormal;
  wait.owner = tid;
  wait.object = 0x1000;
  wait.is_stuck = true;
  wait.wakers_known = true;
  wait.wakers = {{pid, tid, -1, "mutex"}};
  return wait;
}

TEST(RuleClock, ARuleMayTakeHalfOfWhatIsLeft) {
  const double begin = test::processor_time();
  RuleClock clock(milliseconds(100));
  std::vector<double> taken;
  while (clock.begin_rule()) {
    const double began = test::processor_time();
    EXPECT_THROW(while (true) clock.check(), RuleTookTooLong);
    EXPECT_TRUE(clock.is_used_up());
    taken.push_back(test::processor_time() - began);
  }
  EXPECT_LT(test::processor_time() - begin, 0.2);
  ASSERT_GT(taken.size(), 3U);
  EXPECT_LT(taken.size(), 12U);
  EXPECT_GT(taken[0], 0.04);
  EXPECT_LT(taken[3], taken[0]);
}

TEST(RuleClock, ARuleThatIsInTimeIsNotDisturbed) {
  RuleClock clock(std::chrono::hours(1));
  EXPECT_TRUE(clock.begin_rule());
  for (int i = 0; i < 1000; ++i) clock.check();
  EXPECT_FALSE(clock.is_used_up());
}

TEST(RuleClock, DiagnoseNamesTheRulesThatWereLeftOut) {
  const model::Model model = model_of({dead_process(100, {waits_for_itself(100, 100)})});
  std::vector<std::string> limits;
  EXPECT_EQ(diagnose_within(std::chrono::hours(1), model, limits).findings.size(), 1U);
  EXPECT_TRUE(limits.empty());
  const Diagnosed none = diagnose_within(std::chrono::nanoseconds(1), model, limits);
  EXPECT_FALSE(none.has_all_rules);
  EXPECT_TRUE(none.findings.empty());
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_TRUE(limits[0].starts_with("the rules would take too much processor time")) << limits[0];
  EXPECT_NE(limits[0].find("hangs may be missing: lost-openmp-pool, "), std::string::npos) << limits[0];
  EXPECT_NE(limits[0].find("self-deadlock"), std::string::npos) << limits[0];
}

TEST(RuleClock, AProcessWithVeryManyThreadsIsToldLast) {
  std::vector<model::Wait> many;
  for (std::int32_t i = 0; i < 2000; ++i) many.push_back(waits_for_itself(100, 100 + i));
  const model::Model model =
      model_of({dead_process(100, std::move(many)), dead_process(9000, {waits_for_itself(9000, 9000)})});
  const cycles::Cycles cycles = cycles::find_cycles(model);
  ASSERT_EQ(cycles.found.size(), 2001U);
  EXPECT_EQ(cycles.found.front().front().process, 1U);
}

}  // namespace
}  // namespace forksight
