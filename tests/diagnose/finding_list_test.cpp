// Tests that findings take limited memory, and that each rule has a share of it.
#include "diagnose/finding_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/diagnose.hpp"
#include "files/budgets.hpp"
#include "support/copies.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

// The findings differ, because they have different rules.
Finding finding_of(std::size_t bytes) {
  static int number = 0;
  Finding finding;
  finding.rule = "rule" + std::to_string(number++);
  finding.summary = std::string(bytes, 'x');
  return finding;
}

// Adds findings of a megabyte each. Returns how many the rule may add.
std::size_t fill(FindingList& findings) {
  findings.begin_rule();
  for (std::size_t added = 0;; ++added) {
    try {
      findings.push_back(finding_of(1U << 20U));
    } catch (const TooManyFindings&) {
      return added;
    }
  }
}

TEST(FindingList, ARuleMayTakeHalfOfWhatIsLeft) {
  model::Model model;
  model.processes.resize(1);
  FindingList findings(model);
  const std::size_t most = files::kMaxFindingBytes >> 20U;
  const std::size_t first = fill(findings);
  EXPECT_GT(first, most / 2 - 4);
  EXPECT_LE(first, most / 2);
  const std::size_t second = fill(findings);
  EXPECT_GT(second, most / 4 - 4);
  EXPECT_LE(second, most / 4);
  EXPECT_EQ(findings.size(), first + second);
}

TEST(FindingList, CountsTheFramesOfStacks) {
  model::Model model;
  model.processes.resize(1);
  FindingList findings(model);
  findings.begin_rule();
  Finding finding;
  finding.fork.emplace();
  finding.fork->stack.frames.resize(files::kMaxFindingBytes / sizeof(model::Frame));
  EXPECT_THROW(findings.push_back(finding), TooManyFindings);
  finding.fork->stack.frames.clear();
  findings.push_back(finding);  // it is another finding that is too large, not the list
  EXPECT_EQ(findings.size(), 1U);
}

TEST(FindingList, EqualFindingsTakeLittleMemoryAndAreMerged) {
  model::Model model;
  model.processes.resize(10'000);
  FindingList findings(model);
  findings.begin_rule();
  Finding finding = finding_of(100'000);
  finding.culprit.address = 0x5000;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    finding.process = id;
    finding.processes = {id};
    finding.victims = {{static_cast<std::int32_t>(id), "wait4"}};
    findings.push_back(finding);
  }
  EXPECT_EQ(findings.size(), 10'000U);
  EXPECT_EQ(findings.back().processes, std::vector<model::ProcessId>{9'999});
  EXPECT_EQ(findings.back().culprit.address, 0x5000U);
  finding.harm = Certainty::kLikely;
  findings.push_back(finding);  // it is more certain than the others, so it has texts of its own
  const std::vector<Finding> merged = findings.take_merged();
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].count, 10'000U);
  EXPECT_EQ(merged[0].processes.size(), 10'000U);
  EXPECT_EQ(merged[0].victims.size(), 10'000U);
  EXPECT_EQ(merged[0].summary.size(), 100'000U);
  EXPECT_EQ(merged[1].count, 1U);
  EXPECT_EQ(merged[1].summary.size(), 100'000U);
}

// Children that hang in different functions, and a random number that two of them drew.
TEST(FindingList, DiagnoseSaysWhichFindingsAreMissing) {
  test::LockTrace scene({});
  scene.touch(trace::TouchKind::kLock);
  model::Model one = test::read_model(scene.trace);
  one.forks[0].stack.frames.resize(20'000);
  model::Model model = test::copies_of(one, 100);
  for (std::size_t index = 0; index < model.touches.size(); ++index) {
    model.touches[index].stack.frames.resize(1);
    model.touches[index].stack.frames[0].function = "f" + std::to_string(index);
    model.touches[index].stack.frames[0].module = "/bin/app";
  }
  for (const model::ProcessId child : {*model.forks[0].child, *model.forks[1].child}) {
    model.processes[child].ppid = 1;
    model::Draw draw;
    draw.process = child;
    draw.value = 7;
    model.draws.push_back(draw);
  }
  std::vector<std::string> limits;
  const std::vector<Finding> findings = diagnose(model, limits);
  EXPECT_GT(findings.size(), 2U);
  EXPECT_LT(findings.size(), 100U);
  EXPECT_EQ(std::ranges::count(findings, "rng-state-duplicated", &Finding::rule), 1) << "the next rules go on";
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_TRUE(limits[0].starts_with("the findings of the rule orphaned-mutex would take too much memory")) << limits[0];
}

}  // namespace
}  // namespace forksight
