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

TEST(Printable, ShowsCodePointsThatXmlForbids) {
  EXPECT_EQ(printable("\xef\xbf\xbe|\xef\xbf\xbf"), "\\xef\\xbf\\xbe|\\xef\\xbf\\xbf");
  EXPECT_EQ(printable("\xef\xbf\xbd"), "\xef\xbf\xbd");  // U+FFFD is a character
  EXPECT_EQ(escape_json_controls("\"\xef\xbf\xbf\""), "\"\\uffff\"");
}

// All characters with Unicode's property Bidi_Control (PropList.txt), and Unicode's line and paragraph separators.
const char* const kReordering[] = {"\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa", "\xe2\x80\xab",
                                   "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa7",
                                   "\xe2\x81\xa8", "\xe2\x81\xa9", "\xe2\x80\xa8", "\xe2\x80\xa9"};

TEST(Printable, ShowsEachCharacterThatReorders) {
  for (const std::string mark : kReordering) {
    const std::string shown = printable("a" + mark + "b");
    EXPECT_EQ(shown.find(mark), std::string::npos) << shown;
    EXPECT_EQ(shown.substr(0, 3), "a\\x") << shown;
    EXPECT_TRUE(shown.ends_with("b"));
  }
}

// All of Unicode's category Zs (spaces) but U+0020, characters without a width, and tag characters.
const char* const kDisguised[] = {
    "\xc2\xa0",         "\xe1\x9a\x80",     "\xe2\x80\x80",    "\xe2\x80\x81", "\xe2\x80\x82", "\xe2\x80\x83",
    "\xe2\x80\x84",     "\xe2\x80\x85",     "\xe2\x80\x86",    "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89",
    "\xe2\x80\x8a",     "\xe2\x80\xaf",     "\xe2\x81\x9f",    "\xe3\x80\x80", "\xc2\xad",     "\xe2\x80\x8b",
    "\xe2\x80\x8c",     "\xe2\x80\x8d",     "\xe2\x81\xa0",    "\xe1\xa0\x8e", "\xe2\x81\xa3", "\xef\xbb\xbf",
    "\xf3\xa0\x80\x81", "\xf3\xa0\x81\xa1", "\xf3\xa0\x81\xbf"};

TEST(Printable, ShowsSpacesAndCharactersWithoutAWidth) {
  for (const std::string mark : kDisguised) {
    const std::string shown = printable("a" + mark + "b");
    EXPECT_EQ(shown.find(mark), std::string::npos) << shown;
    EXPECT_EQ(shown.substr(0, 3), "a\\x") << shown;
    EXPECT_EQ(escape_json_controls("\"" + mark + "\"").find(mark), std::string::npos);
  }
  EXPECT_EQ(escape_json_controls("\"\xc2\xa0|\xf3\xa0\x81\xa1\""), "\"\\u00a0|\\udb40\\udc61\"");
}

TEST(Printable, ShowsCommandsOfCiSystems) {
  EXPECT_EQ(printable("a ##[add-mask]e ##vso[task.complete]"), "a \\x23#[add-mask]e \\x23#vso[task.complete]");
  EXPECT_EQ(printable("###[group]"), "#\\x23#[group]");
  EXPECT_EQ(printable("## [x] #[y] ##"), "## [x] #[y] ##");
  EXPECT_EQ(escape_json_controls("\"##[error]\""), "\"\\u0023#[error]\"");
}

TEST(JsonControls, AreEscapedAndMeanTheSame) {
  EXPECT_EQ(escape_json_controls("{\"a\": \"x\xe2\x80\xaey\xd8\x9c\"}"), "{\"a\": \"x\\u202ey\\u061c\"}");
  EXPECT_EQ(escape_json_controls("\"\xc2\x9b\""), "\"\\u009b\"");  // C1
  EXPECT_EQ(escape_json_controls("\"\xc2\x80\x7f\""), "\"\\u0080\\u007f\"");
  EXPECT_EQ(escape_json_controls("{\n  \"größe\": \"名前\"\n}"), "{\n  \"größe\": \"名前\"\n}");
  for (const std::string mark : kReordering) {
    EXPECT_EQ(escape_json_controls("\"" + mark + "\"").find(mark), std::string::npos);
  }
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
