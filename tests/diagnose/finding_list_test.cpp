// Tests that findings take limited memory, and that each rule has a share of it.
#include "diagnose/finding_list.hpp"

#include <gtest/gtest.h>

#include <string>

#include "diagnose/diagnose.hpp"
#include "files/budgets.hpp"
#include "support/copies.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

Finding finding_of(std::size_t bytes) {
  Finding finding;
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
  FindingList findings;
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
  FindingList findings;
  findings.begin_rule();
  Finding finding;
  finding.fork.emplace();
  finding.fork->stack.frames.resize(files::kMaxFindingBytes / sizeof(model::Frame));
  EXPECT_THROW(findings.push_back(finding), TooManyFindings);
  finding.fork->stack.frames.clear();
  findings.push_back(finding);  // it is another finding that is too large, not the list
  EXPECT_EQ(findings.size(), 1U);
}

TEST(FindingList, DiagnoseSaysWhichFindingsAreMissing) {
  test::LockTrace scene({});
  scene.touch(trace::TouchKind::kLock);
  model::Model one = test::read_model(scene.trace);
  one.forks[0].stack.frames.resize(20'000);
  std::vector<std::string> limits;
  const std::vector<Finding> findings = diagnose(test::copies_of(one, 100), limits);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_GT(findings[0].count, 1U);
  EXPECT_LT(findings[0].count, 100U);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_TRUE(limits[0].starts_with("orphaned-mutex was found so often")) << limits[0];
}

}  // namespace
}  // namespace forksight
