// Shared code of the tests that start `forksight run` as a program: a temporary folder, and the outcome of a command.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "fixture_process.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr char kFixture[] = FORKSIGHT_FIXTURE;
constexpr char kHazard[] = FORKSIGHT_HAZARD;
constexpr char kSlug[] = "orphaned-mutex";

struct Outcome {
  int status = 0;  // as wait(2) gives it
  std::string output;
  std::string error;
};

inline int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

inline std::string last_line(const std::string& text) {
  const std::string whole = text.substr(0, text.find_last_not_of('\n') + 1);
  return whole.substr(whole.rfind('\n') + 1);
}

inline std::string read_whole(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class RunCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "forksight-run-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Words command(const Words& options, const Words& program) {
    Words words{FORKSIGHT_COMMAND, "run"};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }

  Outcome execute(const Words& words) const {
    FixtureProcess process(words, true, folder_.string());
    Outcome outcome;
    outcome.status = process.wait_end();
    outcome.error = process.stderr_text();
    // stdout_text() reads until end of file. Processes that still exist have the pipe open, so end them first.
    ::kill(-process.pid(), SIGKILL);
    process.wait_group_end();
    outcome.output = process.stdout_text();
    return outcome;
  }
  Outcome run(const Words& options, const Words& program) const { return execute(command(options, program)); }

  // Waits until forksight has examined the processes several times. Returns false if forksight has ended. forksight
  // sleeps between its looks, so the number of its voluntary context switches is the number of its looks.
  static bool wait_for_looks(const FixtureProcess& process) {
    constexpr std::uint64_t kLooks = 12;
    std::optional<std::uint64_t> first;
    for (;;) {
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid != 0)
        return false;
      const auto status = proc::parse_status(proc::read_file(proc::proc_path(process.pid(), "status")).text);
      if (status && !first) first = status->voluntary;
      if (status && status->voluntary >= *first + kLooks) return true;
      ::usleep(20'000);
    }
  }

  // Runs a program that writes a byte and then waits. After several looks of forksight, sends SIGTERM to forksight,
  // unless forksight has ended already.
  Outcome run_idle(const Words& options, const Words& program) const { return run_idle(command(options, program)); }
  Outcome run_idle(const Words& words) const {
    FixtureProcess process(words, true, folder_.string());
    EXPECT_TRUE(process.wait_ready());
    wait_for_looks(process);
    ::kill(process.pid(), SIGTERM);
    Outcome outcome;
    outcome.status = process.wait_end();
    outcome.error = process.stderr_text();
    ::kill(-process.pid(), SIGKILL);
    process.wait_group_end();
    outcome.output = process.stdout_text();
    return outcome;
  }

  fs::path out() const { return folder_ / "forksight-out"; }
  std::vector<fs::path> run_folders() const {
    if (!fs::exists(out())) return {};
    return {fs::directory_iterator(out()), fs::directory_iterator()};
  }

  fs::path folder_;
};

}  // namespace forksight::test
