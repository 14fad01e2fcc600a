// Tests whole runs with the real shim. The tests set the options directly, without a command line.
#include "session/session.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace forksight {
namespace {

namespace fs = std::filesystem;

constexpr char kFixture[] = FORKSIGHT_FIXTURE;
constexpr char kHazard[] = FORKSIGHT_HAZARD;

class Session : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "forksight-session-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.out = folder_ / "out";
    options_.report = folder_ / "report.txt";
    options_.hang_after = std::chrono::milliseconds(200);
    options_.quiet = true;
  }
  void TearDown() override { fs::remove_all(folder_); }

  RunEnd run(std::vector<std::string> command) {
    options_.command = std::move(command);
    return run_session(options_);
  }
  std::string report() const {
    std::ifstream stream(options_.report);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path folder_;
  RunOptions options_;
};

TEST_F(Session, PassesTheStatusAndLeavesNothing) {
  const RunEnd end = run({kFixture, "write", "3"});
  EXPECT_EQ(end.status, 3);
  EXPECT_EQ(end.error, "");
  EXPECT_FALSE(fs::exists(options_.out));
}

TEST_F(Session, EndsAHangThatIsProven) {
  options_.on_hang = OnHang::kKill;
  EXPECT_EQ(run({kHazard, "hang"}).status, 128 + SIGKILL);
  EXPECT_NE(report().find("orphaned-mutex"), std::string::npos) << report();
  options_.error_exitcode = 9;
  EXPECT_EQ(run({kHazard, "hang"}).status, 9);
}

TEST_F(Session, WithdrawsAHangThatEnds) {
  options_.error_exitcode = 9;
  EXPECT_EQ(run({kFixture, "woken-by-proc"}).status, 5);
  EXPECT_EQ(report().find("pipe-held-open"), std::string::npos) << report();
}

TEST_F(Session, ReportsWhyNothingWasStarted) {
  RunEnd end = run({"no-such-command"});
  EXPECT_EQ(end.status, 127);
  EXPECT_NE(end.error.find("no-such-command: command not found"), std::string::npos) << end.error;
  EXPECT_FALSE(fs::exists(options_.out));
  options_.report = folder_ / "none" / "report.txt";
  end = run({kFixture, "write", "3"});
  EXPECT_EQ(end.status, kRunRefused);
  EXPECT_NE(end.error.find("report.txt: cannot be written"), std::string::npos) << end.error;
}

}  // namespace
}  // namespace forksight
