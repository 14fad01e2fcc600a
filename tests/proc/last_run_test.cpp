#include "proc/last_run.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace forksight::proc {
namespace {

constexpr char kSched[] =
    "cat (4242, #threads: 1)\n"
    "-------------------------------------------------------------------\n"
    "se.exec_start                                :      12345678.901234\n"
    "se.vruntime                                  :        123456.123456\n"
    "nr_switches                                  :                   17\n";

TEST(LastRun, IsTheSchedulersNote) { EXPECT_DOUBLE_EQ(parse_last_run(kSched).value_or(-1), 12345678.901234); }

TEST(LastRun, IsUnknownWhereTheKernelDoesNotTell) {
  for (const char* text :
       {"", "se.exec_start", "se.exec_start :", "se.exec_start : 12.5", "se.exec_start : \n", "se.exec_start\n: 12.5\n",
        "se.exec_start : many\n", "se.exec_start : -1\n", "se.exec_start : nan\n", "nr_switches : 17\n"}) {
    EXPECT_FALSE(parse_last_run(text)) << text;
  }
}

TEST(LastRun, HasNoDigitsLeftOut) {
  EXPECT_DOUBLE_EQ(parse_last_run("se.exec_start:0.000000\n").value_or(-1), 0.0);
  EXPECT_DOUBLE_EQ(parse_last_run("se.exec_start : 98765432109.5\n").value_or(-1), 98765432109.5);
}

TEST(LastRun, OfOneselfIsNow) {
  const auto rest = resting_time(getpid());
  // A kernel without CONFIG_SCHED_DEBUG does not have this file for any process.
  EXPECT_EQ(rest.has_value(), access("/proc/self/sched", R_OK) == 0);
  EXPECT_LT(rest.value_or(std::chrono::milliseconds(0)).count(), 10'000);
}

TEST(LastRun, OfNobodyIsUnknown) { EXPECT_FALSE(resting_time(0)); }

}  // namespace
}  // namespace forksight::proc
