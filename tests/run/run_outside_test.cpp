// Tests `forksight run` with programs that do not load the shim. forksight examines these programs from outside.
#include "run_command_fixture.hpp"

namespace forksight {
namespace {

using namespace test;

TEST_F(RunCommand, AProgramWithoutTheShimIsExplainedFromOutside) {
  const Outcome outcome = run({"--on-hang", "kill"}, {"/usr/bin/env", "-u", "LD_PRELOAD", kHazard, "wait"});
  EXPECT_NE(outcome.error.find("CERTAIN HANG: orphaned-mutex"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("locking table_mutex"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("runs without the shim"), std::string::npos) << outcome.error;
}

TEST_F(RunCommand, AFindingFromOutsideIsReportedLater) {
  const Outcome outcome = run({"--on-hang", "kill"}, {"/usr/bin/env", "-u", "LD_PRELOAD", kHazard, "wait"});
  ASSERT_NE(outcome.error.find("locking table_mutex"), std::string::npos) << outcome.error;
  const Outcome later = execute({FORKSIGHT_COMMAND, "report", out().string()});
  EXPECT_EQ(exit_code(later.status), 1) << later.error;
  EXPECT_NE(later.output.find("CERTAIN HANG: orphaned-mutex"), std::string::npos) << later.output;
  EXPECT_NE(later.output.find("locking table_mutex"), std::string::npos) << later.output;
  EXPECT_EQ(later.output.find("no rule explains"), std::string::npos) << later.output;
}

TEST_F(RunCommand, AFindingFromOutsideCountsForTheExitStatus) {
  const Outcome outcome =
      run({"--on-hang", "kill", "--error-exitcode", "9", "-q"}, {"/usr/bin/env", "-u", "LD_PRELOAD", kHazard, "wait"});
  EXPECT_EQ(exit_code(outcome.status), 9) << outcome.error;
}

}  // namespace
}  // namespace forksight
