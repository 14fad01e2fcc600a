#include <gtest/gtest.h>

#include "command/explain_command.hpp"
#include "command/nearest.hpp"

namespace forksight {
namespace {

TEST(NearestSlugs, ByPart) {
  EXPECT_EQ(find_nearest_slugs("openmp"), (std::vector<std::string>{"lost-openmp-pool", "mixed-openmp-runtimes"}));
  EXPECT_EQ(find_nearest_slugs("spinlock"), std::vector<std::string>{"orphaned-spinlock"});
  EXPECT_EQ(find_nearest_slugs("orphaned").size(), 3U);  // at most three suggestions
}

TEST(NearestSlugs, ByTypingErrors) {
  EXPECT_EQ(find_nearest_slugs("orphaned-mutxe"), std::vector<std::string>{"orphaned-mutex"});
  EXPECT_EQ(find_nearest_slugs("lostwakeup"), std::vector<std::string>{"lost-wakeup"});
  EXPECT_EQ(find_nearest_slugs("orphaned_rwlock").front(), "orphaned-rwlock");
}

TEST(NearestWords, OfShortWords) {
  const std::vector<std::string> verbs{"run", "ci", "why", "core", "report"};
  EXPECT_EQ(find_nearest("wyh", verbs), std::vector<std::string>{"why"});
  EXPECT_EQ(find_nearest("whyy", verbs), std::vector<std::string>{"why"});
  EXPECT_EQ(find_nearest("reprot", verbs), std::vector<std::string>{"report"});
  EXPECT_TRUE(find_nearest("nope", verbs).empty());
  EXPECT_TRUE(find_nearest("=", verbs).empty());
}

TEST(NearestSlugs, AreNoneForAnUnknownName) {
  EXPECT_TRUE(find_nearest_slugs("").empty());
  EXPECT_TRUE(find_nearest_slugs("xyzzy").empty());
  EXPECT_TRUE(find_nearest_slugs(std::string(100'000, 'x')).empty());
}

}  // namespace
}  // namespace forksight
