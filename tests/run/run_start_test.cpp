// Tests what CMD inherits from `forksight run`: environment, preloads, arguments, signals, standard input.
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "run_command_fixture.hpp"

namespace forksight {
namespace {

using namespace test;

std::set<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

TEST_F(RunCommand, TheEnvironmentGainsSevenVariables) {
  const std::set<std::string> before = lines_of(execute({"env", "-u", "ASAN_OPTIONS", "A=1", "env"}).output);
  const std::set<std::string> after = lines_of(
      execute({"env", "-u", "ASAN_OPTIONS", "A=1", FORKSIGHT_COMMAND, "run", "-q", "--omp", "clamp", "--on-orphan",
               "abort", "--", "env"})
          .output);
  std::set<std::string> names;
  for (const std::string& line : after) {
    if (!before.contains(line)) names.insert(line.substr(0, line.find('=')));
  }
  EXPECT_EQ(names, (std::set<std::string>{"ASAN_OPTIONS", "FORKSIGHT_CURE", "FORKSIGHT_OMP", "FORKSIGHT_ON_ORPHAN",
                                          "FORKSIGHT_OUT", "FORKSIGHT_PYTHON_SIGNAL", "LD_PRELOAD"}));
  for (const std::string& line : before) EXPECT_TRUE(after.contains(line)) << line;
  EXPECT_TRUE(after.contains("FORKSIGHT_OMP=clamp"));
  EXPECT_TRUE(after.contains("FORKSIGHT_ON_ORPHAN=abort"));
  EXPECT_TRUE(after.contains("FORKSIGHT_CURE=omp"));
}

TEST_F(RunCommand, OptionsOfPredictionSetTheShimsVariables) {
  const auto all =
      lines_of(execute({"env", FORKSIGHT_COMMAND, "run", "-q", "--lock-order", "--predict", "--", "env"}).output);
  EXPECT_TRUE(all.contains("FORKSIGHT_LOCK_ORDER=1"));
  EXPECT_TRUE(all.contains("FORKSIGHT_PREDICT=1"));
  // If the variable is already in the environment of forksight, CMD inherits it.
  const auto one =
      lines_of(execute({"env", "FORKSIGHT_PREDICT=1", FORKSIGHT_COMMAND, "run", "-q", "--", "env"}).output);
  EXPECT_TRUE(one.contains("FORKSIGHT_PREDICT=1"));
}

TEST_F(RunCommand, ACureSetsTheOptionsThatAreNotGiven) {
  struct Case {
    Words options;
    const char* omp;
    const char* on_orphan;
    const char* cure;
  };
  const Case cases[] = {
      {{}, "auto", "report", "omp"},
      {{"--cure", "none"}, "observe", "report", "none"},
      {{"--cure=orphans"}, "observe", "recover", "orphans"},
      {{"--cure", "none", "--omp", "clamp"}, "clamp", "report", "omp"},
      {{"--cure=omp,orphans", "--omp=observe", "--on-orphan=abort"}, "observe", "abort", "none"},
      {{"--on-orphan=recover"}, "auto", "recover", "omp,orphans"},
  };
  for (const Case& one : cases) {
    Words options = one.options;
    options.emplace_back("-q");
    const Outcome outcome = run(options, {"printenv", "FORKSIGHT_OMP", "FORKSIGHT_ON_ORPHAN", "FORKSIGHT_CURE"});
    EXPECT_EQ(outcome.output, std::string(one.omp) + "\n" + one.on_orphan + "\n" + one.cure + "\n");
  }
}

TEST_F(RunCommand, TheShimIsTheFirstPreload) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a sanitized command refuses to start under LD_PRELOAD";
#endif
  const Outcome outcome =
      execute({"env", "LD_PRELOAD=libc.so.6", FORKSIGHT_COMMAND, "run", "-q", "--", "printenv", "LD_PRELOAD"});
  EXPECT_TRUE(outcome.output.starts_with("/")) << outcome.output;
  EXPECT_TRUE(outcome.output.ends_with("/libforksight.so:libc.so.6\n")) << outcome.output;
}

// A path in LD_PRELOAD cannot contain a blank or a colon, and the loader replaces "$LIB" in it. So forksight makes a
// symbolic link to the shim, with a path that LD_PRELOAD can contain.
TEST_F(RunCommand, WorksInAFolderThatLdPreloadCannotName) {
  const fs::path build = fs::path(FORKSIGHT_COMMAND).parent_path();
  const fs::path bin = folder_ / "my tools: $LIB" / "bin";
  const fs::path shim = (bin / fs::path(FORKSIGHT_SHIM).lexically_relative(build)).lexically_normal();
  fs::create_directories(bin);
  fs::create_directories(shim.parent_path());
  fs::copy_file(FORKSIGHT_COMMAND, bin / "forksight");
  fs::copy_file(FORKSIGHT_SHIM, shim);
  const fs::path cache = folder_ / "cache";
  const auto run_there = [&](const Words& program) {
    Words words{"env", "XDG_CACHE_HOME=" + cache.string(), (bin / "forksight").string(), "run", "--out", "a b:c", "--"};
    words.insert(words.end(), program.begin(), program.end());
    return execute(words);
  };
  // Runs twice: the second run finds the symbolic link that the first one made.
  for (int round = 0; round < 2; ++round) {
    const Outcome maps = run_there({"cat", "/proc/self/maps"});
    EXPECT_NE(maps.output.find(shim.string()), std::string::npos) << maps.output << maps.error;
    EXPECT_EQ(maps.error.find("ERROR: ld.so"), std::string::npos) << maps.error;
  }
  const auto links = std::distance(fs::recursive_directory_iterator(cache), fs::recursive_directory_iterator());
  EXPECT_EQ(links, 3) << "the folder forksight, a folder in it, and the link";
  const Outcome hang = run_there({kHazard, "failed"});
  EXPECT_NE(hang.error.find(kSlug), std::string::npos) << hang.error;
  EXPECT_NE(hang.error.find("took it at hazard.c:20"), std::string::npos) << hang.error;
}

TEST_F(RunCommand, CmdInheritsTheSameAsWithoutForksight) {
  const Words alone{"sh", "-c", "\"$0\" describe-start", kFixture};
  const Words watched{"sh", "-c", "\"$1\" run -q -- \"$0\" describe-start", kFixture, FORKSIGHT_COMMAND};
  EXPECT_EQ(execute(watched).output, execute(alone).output);
  const Words ignoring{kFixture, "ignore-children", FORKSIGHT_COMMAND, "run", "-q",
                       "--",     kFixture,          "describe-start",  "3"};
  const Outcome outcome = execute(ignoring);
  EXPECT_EQ(exit_code(outcome.status), 3);
  EXPECT_NE(outcome.output.find("child ignored"), std::string::npos) << outcome.output;
}

TEST_F(RunCommand, CmdReadsStandardInput) {
  const Outcome outcome = execute({"sh", "-c", "printf 'a\\nb' | \"$0\" run -q -- cat", FORKSIGHT_COMMAND});
  EXPECT_EQ(outcome.output, "a\nb");
}

TEST_F(RunCommand, AStaticProgramIsReportedAsALimit) {
  const Outcome outcome = run({}, {FORKSIGHT_STATIC});
  EXPECT_EQ(exit_code(outcome.status), 0);
  EXPECT_NE(outcome.error.find("is statically linked"), std::string::npos) << outcome.error;
}

}  // namespace
}  // namespace forksight
