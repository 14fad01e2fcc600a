#include "proc/last_run.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "proc/proc_fs.hpp"

namespace forksight::proc {
namespace {

constexpr char kSched[] =
    "cat (4242, #threads: 1)\n"
    "-------------------------------------------------------------------\n"
    "se.exec_start                                :      12345678.901234\n"
    "se.vruntime                                  :        123456.123456\n"
    "nr_switches                                  :                   17\n";

TEST(LastRun, IsReadFromTheSchedulersText) { EXPECT_DOUBLE_EQ(parse_last_run(kSched).value_or(-1), 12345678.901234); }

TEST(LastRun, IsUnknownIfTheKernelDoesNotReportIt) {
  for (const char* text :
       {"", "se.exec_start", "se.exec_start :", "se.exec_start : 12.5", "se.exec_start : \n", "se.exec_start\n: 12.5\n",
        "se.exec_start : many\n", "se.exec_start : -1\n", "se.exec_start : nan\n", "nr_switches : 17\n"}) {
    EXPECT_FALSE(parse_last_run(text)) << text;
  }
}

TEST(LastRun, ReadsZeroAndLargeNumbers) {
  EXPECT_DOUBLE_EQ(parse_last_run("se.exec_start:0.000000\n").value_or(-1), 0.0);
  EXPECT_DOUBLE_EQ(parse_last_run("se.exec_start : 98765432109.5\n").value_or(-1), 98765432109.5);
}

// A child sleeps for at least 200 ms. The clock of a processor does not count the time that the hypervisor took from
// the processor. So the test demands only a tenth of the 200 ms.
TEST(LastRun, OfASleeperIsLongAgo) {
  using std::chrono::milliseconds;
  const auto began = std::chrono::steady_clock::now();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
  }
  while (!read_file(proc_path(child, "syscall")).text.starts_with("0 ")) sched_yield();  // until it is in read()
  const auto asleep = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - asleep < milliseconds(200)) sched_yield();
  const auto of_process = idle_time(child);
  const auto of_thread = idle_time(child, child);
  const auto most = std::chrono::steady_clock::now() - began + milliseconds(100);
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(ends[0]);
  close(ends[1]);
  const bool is_noted = access("/proc/self/sched", R_OK) == 0;
  EXPECT_EQ(of_process.has_value(), is_noted);
  EXPECT_EQ(of_thread.has_value(), is_noted);
  if (!is_noted) GTEST_SKIP() << "the kernel has no /proc/PID/sched (CONFIG_SCHED_DEBUG)";
  for (const auto& rest : {of_process, of_thread}) {
    EXPECT_GE(rest.value_or(milliseconds(-1)), milliseconds(20));
    EXPECT_LE(rest.value_or(milliseconds(-1)), most);
  }
}

// forksight reads the clock of a processor at most once a second. In between, forksight estimates the time of this
// clock. So a running thread may seem to have run later than the estimated time. Its resting time is then unknown.
TEST(LastRun, OfOneselfIsNow) { EXPECT_LT(idle_time(getpid()).value_or(std::chrono::milliseconds(0)).count(), 10'000); }

TEST(LastRun, OfNoProcessIsUnknown) { EXPECT_FALSE(idle_time(0)); }

}  // namespace
}  // namespace forksight::proc
