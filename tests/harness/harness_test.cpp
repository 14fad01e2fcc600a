// Runs `forksight suite check` on fork tests of libraries with known faults, and of one library without a fault.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace forksight {
namespace {

using test::Finished;
using test::run_forksight;
using Words = std::vector<std::string>;

const std::string kFolder = FORKSIGHT_FORK_TESTS;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Checked {
  int status = -1;
  std::map<std::string, bool> good;
  std::map<std::string, std::string> lines;
};

Checked check(const std::string& program, const Words& options = {}) {
  Words words = {"suite", "check", "--format", "json"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", kFolder + "/" + program});
  const Finished run = run_forksight(words);
  Checked checked;
  checked.status = run.status;
  const auto report = nlohmann::json::parse(run.out, nullptr, false);
  EXPECT_TRUE(report.is_object()) << run.err;
  if (!report.is_object()) return checked;
  for (const auto& scene : report["scenes"]) {
    const std::string name = scene["scene"];
    checked.good[name] = scene["good"];
    for (const std::string line : scene["lines"]) checked.lines[name] += line + "\n";
  }
  return checked;
}

using Verdicts = std::map<std::string, bool>;

TEST(ForkTest, AChildOfTheThreadWithThePoolHangs) {
  const Checked checked = check("openmp_use");
  EXPECT_EQ(checked.status, 1);
  const Verdicts expected = {{"main", false},       {"child-thread", true}, {"thread", false},
                             {"idle-thread", true}, {"busy-thread", true},  {"again", false},
                             {"grandchild", false}, {"exit", true},         {"exec", true}};
  EXPECT_EQ(checked.good, expected);
  EXPECT_TRUE(has(checked.lines.at("main"), "lost-openmp-pool (proven): ")) << checked.lines.at("main");
  EXPECT_TRUE(has(checked.lines.at("main"), "fix: "));
}

TEST(ForkTest, AChildHangsIfAnotherThreadHeldTheLockAtTheFork) {
  const Checked checked = check("locked_use");
  EXPECT_EQ(checked.status, 1);
  for (const auto& [scene, good] : checked.good) EXPECT_EQ(good, scene != "busy-thread") << scene;
  EXPECT_TRUE(has(checked.lines.at("busy-thread"), "orphaned-mutex (proven): "));
}

TEST(ForkTest, ALockWithHandlersIsGoodEverywhere) {
  const Checked checked = check("handled_use");
  EXPECT_EQ(checked.status, 0);
  EXPECT_EQ(checked.good.size(), 9U);
  for (const auto& [scene, good] : checked.good) EXPECT_TRUE(good) << scene << ":\n" << checked.lines.at(scene);
}

TEST(ForkTest, ASceneFailsIfTheLibraryReturnsAnErrorInTheChild) {
  const Checked checked = check("owned_use");
  EXPECT_EQ(checked.status, 1);
  for (const auto& [scene, good] : checked.good) EXPECT_EQ(good, scene == "exit" || scene == "exec") << scene;
  EXPECT_TRUE(has(checked.lines.at("main"), "a forked child could not use the library")) << checked.lines.at("main");
  EXPECT_TRUE(has(checked.lines.at("main"), "it returned 5")) << checked.lines.at("main");
}

TEST(ForkTest, SaysIfTheLibraryFailsBeforeAnyFork) {
  const Checked checked = check("nowhere_use", {"--scene", "main"});
  EXPECT_EQ(checked.status, 1);
  EXPECT_TRUE(has(checked.lines.at("main"), "before any fork")) << checked.lines.at("main");
}

TEST(ForkTest, AKnownSceneFailsIfItHasNoFaultAnyMore) {
  EXPECT_EQ(check("openmp_use", {"--scene", "main", "--known", "main"}).status, 0);
  EXPECT_EQ(check("openmp_use", {"--scene", "exec", "--known", "exec"}).status, 1);
  const Finished run =
      run_forksight({"suite", "check", "--scene", "exec", "--known", "exec", "--", kFolder + "/openmp_use"});
  EXPECT_TRUE(has(run.out, "remove it from --known")) << run.out;
}

TEST(ForkTest, AProgramThatIsNotProvenToHangFailsAtTheTimeLimit) {
  const Finished run = run_forksight({"suite", "check", "--as-is", "--timeout", "0.5", "--", "sleep", "600"});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(has(run.out, "did not end within 0.5 s")) << run.out;
}

TEST(ForkTest, AnyProgramCanBeCheckedAsItIs) {
  EXPECT_EQ(run_forksight({"suite", "check", "--as-is", "--", "true"}).status, 0);
  const Finished run = run_forksight({"suite", "check", "--as-is", "--", "sh", "-c", "exit 6"});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(has(run.out, "exit status 6")) << run.out;
}

TEST(ForkTest, SaysWhatIsWrongWithTheCommandLine) {
  const Finished other = run_forksight({"suite", "check", "--", "true"});
  EXPECT_EQ(other.status, 3);
  EXPECT_TRUE(has(other.err, "true: is not a fork test")) << other.err;
  for (const char* const as_is : {"--as-is", ""}) {
    std::vector<std::string> words = {"suite", "check", as_is, "--", "forksight-no-such-program"};
    std::erase(words, "");
    const Finished missing = run_forksight(words);
    EXPECT_EQ(missing.status, 3);
    EXPECT_EQ(missing.err, "forksight: error: forksight-no-such-program: no such program\n");
    EXPECT_EQ(missing.out, "");
  }
  const Finished scene = run_forksight({"suite", "check", "--scene", "mian", "--", kFolder + "/openmp_use"});
  EXPECT_EQ(scene.status, 2);
  EXPECT_TRUE(has(scene.err, "mian: no such scene; ")) << scene.err;
  EXPECT_TRUE(
      has(scene.err, "has main, child-thread, thread, idle-thread, busy-thread, again, grandchild, exit, exec"));
  EXPECT_EQ(run_forksight({"suite", "check"}).status, 2);
}

}  // namespace
}  // namespace forksight
