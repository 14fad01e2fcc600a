#include "collect/process_table.hpp"

#include <gtest/gtest.h>

namespace forksight::collect {
namespace {

TraceInfo info(std::int32_t pid, std::int32_t ppid, std::uint64_t start_ticks, std::uint64_t monotonic_ns,
               const char* exe = "/app") {
  TraceInfo info;
  info.pid = pid;
  info.ppid = ppid;
  info.start_ticks = start_ticks;
  info.monotonic_ns = monotonic_ns;
  info.host = "node1";
  info.exe = exe;
  return info;
}

struct Table {
  model::Model model;
  ProcessTable processes{model};
};

TEST(ProcessTable, TwoTracesOfOneProcessAreOne) {
  Table table;
  const auto first = table.processes.enter_creator(info(10, 1, 500, 1000, "/bin/sh"));
  const auto second = table.processes.enter_creator(info(10, 1, 500, 2000, "/bin/after-exec"));
  EXPECT_EQ(first, second);
  EXPECT_EQ(table.model.processes[first].exe, "/bin/after-exec");
}

TEST(ProcessTable, AnExecEndsEarlierTouchesAndHandlerRuns) {
  Table table;
  const auto process = table.processes.enter_creator(info(10, 1, 500, 1000));
  table.processes.enter_creator(info(10, 1, 500, 2000));
  for (const std::uint64_t time : {1500U, 2500U}) {
    table.model.handler_runs.emplace_back();
    table.model.handler_runs.back().process = process;
    table.model.handler_runs.back().since_ns = time;
    table.model.touches.emplace_back();
    table.model.touches.back().process = process;
    table.model.touches.back().time_ns = time;
  }
  table.processes.end_earlier_images();
  ASSERT_EQ(table.model.handler_runs.size(), 1U);
  EXPECT_EQ(table.model.handler_runs[0].since_ns, 2500U);
  EXPECT_TRUE(table.model.touches[0].returned);
  EXPECT_FALSE(table.model.touches[1].returned);
}

TEST(ProcessTable, APidThatIsUsedAgainIsAnotherProcess) {
  Table table;
  EXPECT_NE(table.processes.enter_creator(info(10, 1, 500, 1000)),
            table.processes.enter_creator(info(10, 1, 900, 2000)));
}

TEST(ProcessTable, TheSamePidOnTwoHostsIsTwoProcesses) {
  Table table;
  TraceInfo other = info(10, 1, 500, 1000);
  other.host = "node2";
  EXPECT_NE(table.processes.enter_creator(info(10, 1, 500, 1000)), table.processes.enter_creator(other));
}

TEST(ProcessTable, AChildThatExecsKeepsItsIdentity) {
  // The order in which the traces are read does not matter.
  Table table;
  const auto parent = info(10, 1, 500, 1000, "/parent");
  table.processes.enter_creator(parent);
  const auto child = table.processes.enter_child(parent, 20, 10, 1500);
  EXPECT_EQ(table.processes.enter_creator(info(20, 10, 600, 1700, "/exec")), child);
  EXPECT_EQ(table.model.processes[child].exe, "/exec");
  EXPECT_TRUE(table.model.processes[child].has_execed);
  EXPECT_EQ(table.model.processes[child].start_ticks, 600U);

  Table reversed;
  const auto exec = reversed.processes.enter_creator(info(20, 10, 600, 1700, "/exec"));
  reversed.processes.enter_creator(parent);
  EXPECT_EQ(reversed.processes.enter_child(parent, 20, 10, 1500), exec);
  EXPECT_EQ(reversed.model.processes[exec].exe, "/exec");
  EXPECT_TRUE(reversed.model.processes[exec].has_execed);
}

TEST(ProcessTable, ATraceOlderThanTheForkIsOfAnEarlierProcess) {
  Table table;
  const auto parent = info(10, 1, 500, 1000);
  const auto old = table.processes.enter_creator(info(20, 10, 450, 900));
  EXPECT_NE(table.processes.enter_child(parent, 20, 10, 1500), old);
}

TEST(ProcessTable, ChildrenKnowTheRankOfTheirParent) {
  Table table;
  TraceInfo parent = info(10, 1, 500, 1000);
  parent.rank = 3;
  parent.world_size = 8;
  table.processes.enter_creator(parent);
  const auto child = table.processes.enter_child(parent, 20, 10, 1500);
  EXPECT_EQ(table.model.processes[child].rank, 3);
  EXPECT_EQ(table.model.processes[child].ppid, 10);
  EXPECT_EQ(table.model.processes[child].start_ticks, 0U);
}

}  // namespace
}  // namespace forksight::collect
