// What stands between us and a process, in words.
#include <gtest/gtest.h>

#include "image/refusal.hpp"

namespace forksight::image {
namespace {

TEST(Refusal, YamaIsToldByItsScope) {
  EXPECT_FALSE(explain_yama(0));
  EXPECT_FALSE(explain_yama(-1));
  for (const auto& [scope, words] : {std::pair{1, "only its ancestors"}, {2, "only root"}, {3, "nobody"}}) {
    const std::string said = explain_yama(scope).value_or("");
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_NE(said.find("kernel.yama.ptrace_scope is " + std::to_string(scope)), std::string::npos) << said;
  }
  EXPECT_NE(explain_yama(1)->find("CAP_SYS_PTRACE"), std::string::npos);
  EXPECT_NE(explain_yama(2)->find("CAP_SYS_PTRACE"), std::string::npos);
}

}  // namespace
}  // namespace forksight::image
