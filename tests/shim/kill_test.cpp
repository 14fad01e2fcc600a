// Tests that a trace can be read up to its last record even if SIGKILL ended the processes that wrote it.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../support/reader.hpp"
#include "collect/trace_file.hpp"

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "forksight-kill-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

pid_t spawn_storm(const fs::path& out) {
  std::vector<std::string> variables = {"LD_PRELOAD=" FORKSIGHT_SHIM, "FORKSIGHT_OUT=" + out.string()};
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string program = FORKSIGHT_STORM;
  char* arguments[] = {program.data(), nullptr};
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environment.data()), 0);
  return child;
}

// `limit` is a sentence about what the trace lacks. Returns whether the death of a writer may be the reason. The trace
// must have no other limits.
bool is_expected(const std::string& limit) {
  return limit.find("were begun and not finished") != std::string::npos ||
         limit.find("had not finished creating it") != std::string::npos;
}

TEST(Trace, SurvivesSigkillAtRandomInstants) {
  constexpr int kInstants = 200;
  std::mt19937 random(20250101);  // the seed is fixed; the scheduler still makes the runs differ
  std::uniform_int_distribution<int> delay_us(500, 40'000);
  std::size_t records = 0;
  int traces = 0;
  for (int i = 0; i < kInstants; ++i) {
    const Folder out;
    const pid_t child = spawn_storm(out.path());
    ASSERT_GT(child, 0);
    // The delay chooses the instant of the signal. It does not order events.
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us(random)));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    for (const auto& entry : fs::directory_iterator(out.path())) {
      const auto trace = forksight::collect::TraceFile::read(forksight::files::reader_of_test(), entry.path());
      ASSERT_TRUE(trace.ok()) << trace.error();
      for (const std::string& limit : trace->limits()) EXPECT_TRUE(is_expected(limit)) << limit;
      records += trace->records().size();
      ++traces;
    }
  }
  std::printf("%d of %d killed runs left a trace; %zu records read\n", traces, kInstants, records);
  EXPECT_GT(traces, kInstants / 2);
  EXPECT_GT(records, static_cast<std::size_t>(kInstants) * 10);
}

}  // namespace
