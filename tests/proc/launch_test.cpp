#include "proc/launch.hpp"

#include <gtest/gtest.h>

namespace forksight::proc {
namespace {

TEST(ResolveProgram, FollowsPath) {
  EXPECT_EQ(resolve_program("sh").filename(), "sh");
  EXPECT_EQ(resolve_program("/bin/sh"), "/bin/sh");
  EXPECT_TRUE(resolve_program("no-such-command").empty());
  EXPECT_TRUE(resolve_program("./no-such-file").empty());
}

}  // namespace
}  // namespace forksight::proc
