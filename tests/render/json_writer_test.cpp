// Tests that JsonWriter writes the same text as nlohmann::json, and that it gives the text away piece by piece.
#include "render/json_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace forksight::render {
namespace {

TEST(JsonWriter, WritesTheLayoutOfNlohmann) {
  const std::string text = json_text([](JsonWriter& out) {
    out.begin_object();
    out.key("empty_list");
    out.begin_array();
    out.end_array();
    out.key("empty_object");
    out.begin_object();
    out.end_object();
    out.key("list");
    out.begin_array();
    out.value(1);
    out.begin_object();
    out.member("a", true);
    out.member("b", false);
    out.end_object();
    out.begin_array();
    out.null();
    out.value("last");
    out.end_array();
    out.end_array();
    out.member("smallest", std::numeric_limits<std::int64_t>::min());
    out.member("largest", std::numeric_limits<std::uint64_t>::max());
    out.member("tenth", 0.1);
    out.member("one", 1.0);
    out.member("not_finite", std::numeric_limits<double>::infinity());
    out.end_object();
  });
  EXPECT_EQ(text, nlohmann::ordered_json::parse(text).dump(2) + "\n");
  EXPECT_NE(text.find("\"not_finite\": null"), std::string::npos);
}

TEST(JsonWriter, EachTextIsReadBack) {
  std::string all_ascii;
  for (char c = 0; c < 0x7f; ++c) all_ascii += c;
  for (const std::string& text :
       {std::string(), all_ascii, std::string("größe 名前"), std::string("\u202e\u2028\u009b\x7f")}) {
    const std::string json = json_text([&](JsonWriter& out) { out.value(text); });
    EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), text);
  }
}

TEST(JsonWriter, NoControlCharacterIsWrittenAsItIs) {
  const std::string json = json_text([](JsonWriter& out) { out.value("a\x1b[31m\n\u202e\u009b\x7f"); });
  EXPECT_EQ(json, "\"a\\u001b[31m\\n\\u202e\\u009b\\u007f\"\n");
}

TEST(JsonWriter, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(json_text([](JsonWriter& out) {
              out.value(
                  "a\xff"
                  "b");
            }),
            "\"a\xef\xbf\xbd"
            "b\"\n");
}

// Writes a list of 100,000 numbers, about 900 KB.
bool write_list(const Sink& sink) {
  JsonWriter out(sink);
  out.begin_array();
  for (int number = 0; number < 100'000; ++number) out.value(number);
  out.end_array();
  return out.finish();
}

TEST(JsonWriter, GivesALongDocumentAwayPieceByPiece) {
  std::size_t pieces = 0;
  std::size_t longest = 0;
  std::string text;
  EXPECT_TRUE(write_list([&](std::string_view piece) {
    ++pieces;
    longest = std::max(longest, piece.size());
    text += piece;
    return true;
  }));
  EXPECT_GT(pieces, 5U);
  EXPECT_LT(longest, 100'000U);
  EXPECT_EQ(nlohmann::json::parse(text).size(), 100'000U);
}

TEST(JsonWriter, ARefusedPieceIsTheLast) {
  int pieces = 0;
  EXPECT_FALSE(write_list([&](std::string_view) { return ++pieces < 3; }));
  EXPECT_EQ(pieces, 3);
}

}  // namespace
}  // namespace forksight::render
