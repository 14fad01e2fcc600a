// Tests each report of docs/reports.md at each width, with and without colour.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "render/escapes.hpp"
#include "render/printable.hpp"
#include "render/programs.hpp"
#include "share.hpp"

namespace forksight {
namespace {

constexpr std::size_t kWidths[] = {40, 80, 120, 200};

using SharedProgram = std::shared_ptr<const test::Program>;

class Report : public testing::TestWithParam<SharedProgram> {};

TEST_P(Report, NoLineIsWiderThanThePageUnlessItIsOneWord) {
  for (const std::size_t columns : kWidths) {
    for (const bool full : {false, true}) {
      std::istringstream text(test::render_report(*GetParam(), columns, false, full));
      for (std::string line; std::getline(text, line);) {
        const std::size_t first = line.find_first_not_of(' ');
        const bool is_one_word = first != std::string::npos && line.find(' ', first) == std::string::npos;
        EXPECT_TRUE(render::width(line) <= columns || is_one_word) << columns << " columns: " << line;
        EXPECT_FALSE(line.ends_with(' ')) << line;
      }
    }
  }
}

TEST_P(Report, ColourAddsNothingButEscapes) {
  for (const std::size_t columns : kWidths) {
    const std::string coloured = test::render_report(*GetParam(), columns, true);
    const std::string plain = test::render_report(*GetParam(), columns);
    const bool is_certain = plain.find("\n1. CERTAIN") != std::string::npos;
    EXPECT_TRUE(is_certain || plain.find("\n1. LIKELY") != std::string::npos);
    EXPECT_NE(coloured.find(is_certain ? "\x1b[1;31m1. CERTAIN" : "\x1b[1;33m1. LIKELY"), std::string::npos);
    EXPECT_EQ(test::without_escapes(coloured), plain);
  }
}

TEST_P(Report, HasTheLinesOfTheUser) {
  for (const std::size_t columns : kWidths) {
    const std::string text = test::render_report(*GetParam(), columns);
    for (const std::string& place : GetParam()->own_places) {
      EXPECT_NE(text.find(place), std::string::npos) << place << " at " << columns << " columns:\n" << text;
    }
  }
}

TEST_P(Report, AdvisesInTheWordsOfTheFramework) {
  const std::string text = test::render_report(*GetParam(), 200);
  EXPECT_NE(text.find(GetParam()->remedy, text.find("What to do")), std::string::npos) << text;
}

// At each width, the report consists of the same words.
TEST_P(Report, SaysTheSameAtEachWidth) {
  const auto words = [](const std::string& text) {
    std::istringstream stream(text);
    std::string joined;
    for (std::string word; stream >> word;) joined += word + " ";
    return joined;
  };
  const std::string narrow = words(test::render_report(*GetParam(), 40));
  for (const std::size_t columns : {80UL, 120UL, 200UL, 0UL})
    EXPECT_EQ(words(test::render_report(*GetParam(), columns)), narrow) << columns;
}

// The summary is the second line of the finding.
TEST_P(Report, TheSummaryNamesALineOfTheUser) {
  std::istringstream text(test::render_report(*GetParam(), 0));
  std::string line;
  while (std::getline(text, line) && !line.starts_with("1. ")) {
  }
  ASSERT_TRUE(std::getline(text, line));
  EXPECT_NE(line.find(GetParam()->own_places.front()), std::string::npos) << line;
}

std::string program_name(const testing::TestParamInfo<SharedProgram>& about) {
  std::string name = about.param->name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Programs, Report, testing::ValuesIn(test::share(test::all_programs())), program_name);

TEST(Reports, AreOfManyFrameworks) {
  const std::vector<test::Program> programs = test::all_programs();
  const auto has_remedy = [](const test::Program& program) { return !program.remedy.empty(); };
  EXPECT_GE(std::ranges::count_if(programs, has_remedy), 8);
  EXPECT_GE(programs.size(), 16U);
}

}  // namespace
}  // namespace forksight
