// Compares reports with golden files. With FORKSIGHT_UPDATE_GOLDEN=1, writes the golden files instead: check the
// difference with git.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "diagnose/diagnose.hpp"
#include "render/escapes.hpp"
#include "render/samples.hpp"
#include "render/text.hpp"
#include "render/waits.hpp"
#include "share.hpp"

namespace forksight {
namespace {

std::string render(const test::Sample& sample, bool colour) {
  render::TextOptions options;
  options.colour = colour;
  options.cwd = "/src/app";
  const auto findings = diagnose(sample.model);
  const std::string text =
      render::render_text(sample.model, findings, options) +
      render::render_waits(sample.model, render::find_without_finding(sample.model, findings), options);
  const std::string limits = render::render_limits(sample.model.limits, options);
  return limits.empty() ? text : text + "\n" + limits;
}

using SharedSample = std::shared_ptr<const test::Sample>;

class Golden : public testing::TestWithParam<SharedSample> {};

TEST_P(Golden, Text) {
  const std::string path = FORKSIGHT_GOLDEN "/" + GetParam()->name + ".txt";
  const std::string text = render(*GetParam(), false);
  if (std::getenv("FORKSIGHT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str());
}

TEST_P(Golden, OnlyNewlinesControlTheTerminal) {
  for (const char c : render(*GetParam(), false)) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
    EXPECT_NE(c, '\x7f');
  }
}

// Without the escapes that forksight writes, the coloured text is equal to the plain text.
TEST_P(Golden, ColourAddsNothingElse) {
  const std::string coloured = render(*GetParam(), true);
  EXPECT_NE(coloured.find("\x1b["), std::string::npos);
  EXPECT_EQ(test::without_escapes(coloured), render(*GetParam(), false));
}

TEST_P(Golden, OnlySummariesHaveLongLines) {
  std::istringstream text(render(*GetParam(), false));
  const auto findings = diagnose(GetParam()->model);
  std::size_t long_lines = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.size() > 110) ++long_lines;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
  EXPECT_LE(long_lines, findings.size());
}

std::string name_of(const testing::TestParamInfo<SharedSample>& about) {
  std::string name = about.param->name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Samples, Golden, testing::ValuesIn(test::share(test::all_samples())), name_of);

}  // namespace
}  // namespace forksight
