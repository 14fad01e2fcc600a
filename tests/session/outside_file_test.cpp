// Tests outside.json: forksight reads back what it wrote, and refuses documents that it does not know.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "session/outside_file.hpp"

namespace forksight {
namespace {

std::vector<KeptFinding> make_kept() {
  std::vector<KeptFinding> kept(2);
  kept[0].processes.resize(2);
  kept[0].processes[0].pid = 12;
  kept[0].processes[0].start_ticks = 34;
  kept[0].processes[1].host = "node-1";
  kept[0].finding.rule = "lock-cycle";
  // These are indices into the model of the run, so they have no meaning in the file.
  kept[0].finding.process = 70;
  kept[0].finding.processes = {70, 71};
  kept[1].processes = {kept[0].processes[0]};
  kept[1].finding.rule = "join-cycle";
  return kept;
}

TEST(OutsideFile, IsReadBackUnchanged) {
  const std::string text = outside_to_json(make_kept());
  const auto again = parse_outside(text);
  ASSERT_TRUE(again) << again.error();
  ASSERT_EQ(again->size(), 2U);
  EXPECT_EQ(again.value()[0].processes.at(0).start_ticks, 34U);
  EXPECT_EQ(again.value()[0].processes.at(1).host, "node-1");
  EXPECT_EQ(again.value()[1].finding.rule, "join-cycle");
  EXPECT_EQ(again.value()[1].processes.at(0).pid, 12);
  EXPECT_EQ(outside_to_json(again.value()), text);
}

TEST(OutsideFile, RefusesOtherDocuments) {
  EXPECT_TRUE(parse_outside(outside_to_json({})));
  std::string text = outside_to_json(make_kept());
  const std::string schema = "forksight-outside/2";
  ASSERT_NE(text.find(schema), std::string::npos);
  EXPECT_FALSE(parse_outside(text.replace(text.find(schema), schema.size(), "forksight-outside/1")));
  EXPECT_FALSE(parse_outside(""));
}

}  // namespace
}  // namespace forksight
