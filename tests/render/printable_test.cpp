#include "render/printable.hpp"

#include <gtest/gtest.h>

namespace forksight::render {
namespace {

TEST(Printable, KeepsText) {
  EXPECT_EQ(printable("plain \"text\" \\n"), "plain \"text\" \\n");
  EXPECT_EQ(printable("größe 名前 🔒"), "größe 名前 🔒");
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(printable("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(printable(std::string("a\0b\n\t\x7f", 6)), "a\\x00b\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // C1: CSI in one character
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
}

TEST(Printable, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3("), "\\xc3(");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");                    // cut
}

TEST(Width, CountsCodePoints) {
  EXPECT_EQ(width("abc"), 3U);
  EXPECT_EQ(width("größe"), 5U);
}

}  // namespace
}  // namespace forksight::render
