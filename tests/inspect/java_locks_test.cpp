#include "inspect/java_locks.hpp"

#include <gtest/gtest.h>

namespace forksight::inspect {
namespace {

model::Wait wait_in(std::initializer_list<const char*> functions) {
  model::Wait wait;
  for (const char* const function : functions) {
    model::Frame frame;
    frame.function = function;
    wait.stack.frames.push_back(frame);
  }
  return wait;
}

TEST(JavaLocks, TheReportNamesTheCommandThatShowsTheHolder) {
  model::Model model;
  model.processes.resize(2);
  model.processes[0].pid = 7;
  model.processes[1].pid = 8;
  model.processes[1].waits = {wait_in({"os::PlatformEvent::park", "ObjectMonitor::EnterI", "ObjectMonitor::enter"}),
                              wait_in({"ObjectMonitor::enter(JavaThread*)"})};
  const std::vector<std::string> told = tell_java_locks(model);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("process 8: 2 threads wait to enter `synchronized` code"), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("`jstack 8`"), std::string::npos) << told[0];
}

TEST(JavaLocks, IdleThreadsWaitForNoLock) {
  model::Model model;
  model.processes.resize(1);
  model.processes[0].waits = {wait_in({"os::PlatformMonitor::wait", "VMThread::wait_for_operation"}),
                              wait_in({"Parker::park", "Unsafe_Park"}), wait_in({"ObjectMonitor::wait"})};
  EXPECT_TRUE(tell_java_locks(model).empty());
}

}  // namespace
}  // namespace forksight::inspect
