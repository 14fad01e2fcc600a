#include "render/link.hpp"

#include <gtest/gtest.h>

namespace forksight::render {
namespace {

TEST(Link, NamesHostAndPath) {
  EXPECT_EQ(file_uri("node-3.lan", "/src/app/a_b-c~1.cpp"), "file://node-3.lan/src/app/a_b-c~1.cpp");
}

TEST(Link, EncodesAllOtherBytes) {
  EXPECT_EQ(file_uri("h", "/a b/\x1b\\;%#?\xc3\xa4"), "file://h/a%20b/%1B%5C%3B%25%23%3F%C3%A4");
  EXPECT_EQ(file_uri("h\x1b/..;", "/a"), "file://h%1B%2F..%3B/a");
}

TEST(Link, IsForAbsolutePathsOnly) {
  EXPECT_EQ(file_uri("h", "a.cpp"), "");
  EXPECT_EQ(file_uri("h", ""), "");
}

}  // namespace
}  // namespace forksight::render
