// outside.json: what it says it reads again, and nothing that it does not understand.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "session/outside_file.hpp"

namespace forksight {
namespace {

TEST(OutsideFile, IsWrittenAndReadAlike) {
  KeptFinding kept;
  kept.processes.resize(2);
  kept.processes[0].pid = 12;
  kept.processes[1].host = "node-1";
  kept.finding.rule = "lock-cycle";
  kept.finding.harm = Certainty::kLikely;
  kept.finding.outcome = Outcome::kMayHang;
  kept.finding.culprit.kind = CulpritKind::kFileLock;
  kept.finding.culprit.holder = Holder{1, 2, "a", "b", "c", "d", true};
  kept.finding.fork = ForkSite{3, 4, {}};
  kept.finding.stack.frames.push_back({"f", "f.c", 7, "/lib/x.so", 9, true, true, false});
  kept.finding.chain = {"one", "two"};
  kept.finding.victims = {{5, "pipe"}};
  kept.finding.fixes = {{"mend it", true}};
  const std::string text = outside_to_json({kept});
  const auto again = parse_outside(text);
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(outside_to_json(again.value()), text);
}

TEST(OutsideFile, RefusesWhatIsNone) {
  KeptFinding kept;
  kept.processes.resize(1);
  const std::string whole = outside_to_json({kept});
  ASSERT_TRUE(parse_outside(whole));
  // The last two are the closing brace and the end of the line.
  for (std::size_t length = 0; length + 2 < whole.size(); ++length)
    EXPECT_FALSE(parse_outside(whole.substr(0, length)));
  for (const auto& [from, to] : {std::pair{"possible", "perhaps"},
                                 {"\"pid\": 0", "\"pid\": 99999999999"},
                                 {"\"count\": 1", "\"count\": -1"},
                                 {"\"cut\": false", "\"cut\": 0"},
                                 {"forksight-outside/1", "forksight-outside/2"}}) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    EXPECT_FALSE(parse_outside(text.replace(at, std::string(from).size(), to))) << from;
  }
  EXPECT_FALSE(parse_outside(std::string(100'000, '[')));
}

}  // namespace
}  // namespace forksight
