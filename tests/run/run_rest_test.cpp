// The user presses Ctrl-C while no process does anything, but no hang is proven. forksight then prints what each
// process waits for, and ends. If a process is stuck, and there is no finding about it, SIGTERM has the same effect.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "proc/proc_fs.hpp"
#include "run_command_fixture.hpp"

namespace forksight {
namespace {

using namespace test;

// In this mode the program reads from a pipe. Its child has the writing end of the pipe, and waits for a signal.
constexpr char kMode[] = "pipe-healthy";

// forksight examines the processes every quarter of a second. After kLooks examinations, forksight knows that the
// processes do nothing.
void wait_until_idleness_is_known(const FixtureProcess& process) {
  constexpr std::uint64_t kLooks = 16;
  const auto looks = [&] {
    const auto status = proc::parse_status(proc::read_file(proc::proc_path(process.pid(), "status")).text);
    return status ? status->voluntary : 0;
  };
  const std::uint64_t before = looks();
  while (looks() < before + kLooks) ::usleep(20'000);
}

void expect_waits(const std::string& text, pid_t reader, pid_t writer) {
  EXPECT_NE(text.find("Not proven to be stuck"), std::string::npos) << text;
  EXPECT_NE(text.find("process " + std::to_string(reader) + " (run_fixture)"), std::string::npos) << text;
  EXPECT_NE(text.find("process " + std::to_string(writer) + " (run_fixture)"), std::string::npos) << text;
  EXPECT_NE(text.find("in read: pipe:["), std::string::npos) << text;
  EXPECT_NE(text.find("could be ended by: process " + std::to_string(writer) + " by its descriptor"), std::string::npos)
      << text;
}

class Rest : public RunCommand {
 protected:
  // Starts forksight, finds the reader (the program) and the writer (its child), and waits until forksight knows that
  // both do nothing.
  void start(const Words& options) {
    process_.emplace(command(options, {kFixture, kMode}), true, folder_.string());
    ASSERT_TRUE(process_->wait_ready());
    const auto readers = proc::read_children(process_->pid());
    ASSERT_EQ(readers.size(), 1U);
    reader_ = readers.front();
    const auto writers = proc::read_children(reader_);
    ASSERT_EQ(writers.size(), 1U);
    writer_ = writers.front();
    wait_until_idleness_is_known(*process_);
  }
  int interrupt() {
    EXPECT_EQ(::kill(process_->pid(), SIGINT), 0);
    return exit_code(process_->wait_end());
  }

  std::optional<FixtureProcess> process_;
  pid_t reader_ = 0;
  pid_t writer_ = 0;
};

TEST_F(Rest, AnInterruptShowsTheWaitOfEachProcess) {
  start({});
  EXPECT_EQ(process_->stderr_text(), "") << "nothing hangs";
  EXPECT_EQ(interrupt(), 128 + SIGINT);
  const std::string error = process_->stderr_text();
  expect_waits(error, reader_, writer_);
  EXPECT_NE(error.find("pipe_healthy"), std::string::npos) << "the report does not name the function: " << error;
  EXPECT_LT(error.find("Not proven to be stuck"), error.find("the command was ended by signal 2 (SIGINT)")) << error;
}

// A terminal sends the signal to all processes. The program ends before forksight has acted.
TEST_F(Rest, AnInterruptThatEndsTheProgramFirstShowsTheWaitsToo) {
  start({});
  ASSERT_EQ(::kill(-process_->pid(), SIGINT), 0);
  EXPECT_EQ(exit_code(process_->wait_end()), 128 + SIGINT);
  expect_waits(process_->stderr_text(), reader_, writer_);
}

TEST_F(Rest, TheReportFileContainsTheWaits) {
  start({"--report", "report.txt"});
  EXPECT_EQ(interrupt(), 128 + SIGINT);
  expect_waits(read_whole(folder_ / "report.txt"), reader_, writer_);
  EXPECT_EQ(process_->stderr_text().find("Not proven to be stuck"), std::string::npos) << process_->stderr_text();
}

TEST_F(Rest, QuietPrintsNothing) {
  start({"-q"});
  EXPECT_EQ(interrupt(), 128 + SIGINT);
  EXPECT_EQ(process_->stderr_text(), "");
}

TEST_F(Rest, ABusyProgramIsNotReported) {
  FixtureProcess process(command({}, {"sh", "-c", "echo; while :; do :; done"}), true, folder_.string());
  ASSERT_TRUE(process.wait_ready());
  wait_until_idleness_is_known(process);
  ASSERT_EQ(::kill(process.pid(), SIGINT), 0);
  EXPECT_EQ(exit_code(process.wait_end()), 128 + SIGINT);
  EXPECT_EQ(process.stderr_text().find("Not proven to be stuck"), std::string::npos) << process.stderr_text();
}

// The process waits for a lock, and the handler of a signal may end the wait. So forksight has examined the process,
// but has reported nothing.
TEST_F(Rest, AProcessThatWasNotReportedDoesNotStillHang) {
  for (const int signal : {SIGTERM, SIGINT}) {
    FixtureProcess process(command({"--hang-after", "0.5"}, {kFixture, "dead-with-handlers"}), true, folder_.string());
    ASSERT_TRUE(process.wait_ready());
    // forksight looks more often at a process that may be stuck, so it needs more looks until it knows the idleness.
    // With sanitizers, each look takes longer, so forksight checks the idleness less often.
    const int rounds = std::getenv("FORKSIGHT_SANITIZED") != nullptr ? 8 : 2;
    for (int i = 0; i < rounds; ++i) wait_until_idleness_is_known(process);
    EXPECT_EQ(process.stderr_text(), "");
    ASSERT_EQ(::kill(process.pid(), signal), 0);
    EXPECT_EQ(exit_code(process.wait_end()), 128 + signal);
    const std::string error = process.stderr_text();
    EXPECT_EQ(error.find("as reported above"), std::string::npos) << error;
    EXPECT_NE(error.find("Not proven to be stuck"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace forksight
