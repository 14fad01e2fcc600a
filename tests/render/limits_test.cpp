#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "render/text.hpp"

namespace forksight::render {
namespace {

constexpr const char* kStripped = ": is stripped: some of its functions have no names";

TEST(Limits, AreMergedIfTheyHoldForSeveralFiles) {
  EXPECT_EQ(
      merge_limits({std::string("/usr/lib/liba.so") + kStripped, "process 7: cannot be read",
                    std::string("/usr/lib/libb.so") + kStripped, std::string("/usr/lib/liba.so") + kStripped}),
      (std::vector<std::string>{
          "Each of these 2 files is stripped: some of its functions have no names: /usr/lib/liba.so, /usr/lib/libb.so",
          "process 7: cannot be read"}));
}

TEST(Limits, AreKeptIfTheyHoldForOneFile) {
  EXPECT_EQ(merge_limits({std::string("/usr/lib/liba.so") + kStripped}),
            std::vector<std::string>{std::string("/usr/lib/liba.so") + kStripped});
}

TEST(Limits, CountTheRestOfALongList) {
  std::vector<std::string> limits;
  for (int i = 0; i < 20; ++i)
    limits.push_back("/lib/lib" + std::to_string(i) + ".so: the file is gone: its frames have no names");
  const std::vector<std::string> merged = merge_limits(limits);
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_TRUE(merged[0].starts_with("For each of these 20 files: the file is gone")) << merged[0];
  EXPECT_TRUE(merged[0].ends_with("/lib/lib7.so and 12 more")) << merged[0];
}

TEST(Limits, AreEmptyIfEverythingWasSeen) {
  EXPECT_EQ(render_limits({}), "");
  EXPECT_EQ(render_limits({"something"}), "What could not be seen:\n    - something\n");
}

TEST(Limits, LongListsAreFolded) {
  const std::vector<std::string> many(40, "process 7 (app) hangs");
  const std::vector<std::string> folded = fold(many, "unexplained hangs", {});
  ASSERT_EQ(folded.size(), 13U);
  EXPECT_EQ(folded.back(), "28 more unexplained hangs; --format json has them all");
  TextOptions full;
  full.full = true;
  EXPECT_EQ(fold(many, "unexplained hangs", full), many);
  EXPECT_EQ(fold({"one"}, "unexplained hangs", {}), std::vector<std::string>{"one"});
}

TEST(Findings, AreDescribedUpToAHundred) {
  model::Model model;
  model.processes.resize(1);
  std::vector<Finding> findings(150);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    findings[i].rule = "lock-cycle";
    findings[i].processes = {0};
    if (i >= 90) findings[i].outcome = Outcome::kCured;
  }
  const std::string text = render_text(model, findings);
  EXPECT_NE(text.find("\n100. CURED: lock-cycle"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n101. "), std::string::npos);
  EXPECT_NE(text.find("\n50 more findings; --full shows all\n"), std::string::npos);
  TextOptions full;
  full.full = true;
  const std::string all = render_text(model, findings, full);
  EXPECT_NE(all.find("\n150. CURED: lock-cycle"), std::string::npos);
  EXPECT_EQ(all.find("more findings"), std::string::npos);
}

// The user started forksight because of the hang, so the report begins with the unexplained hangs.
TEST(Unexplained, IsReportedInTheFirstLines) {
  const std::string text = render_text({}, {}, {}, {"process 7 (app) has been stuck, and no rule explains why"});
  EXPECT_EQ(text,
            "forksight: 1 unexplained hang in 0 processes\n"
            "    - process 7 (app) has been stuck, and no rule explains why\n");
  EXPECT_EQ(render_text({}, {}), "forksight: nothing found in 0 processes\n");
}

}  // namespace
}  // namespace forksight::render
