// Tests that no two rules have the same slug, and that each slug has a complete page in docs/hazards/.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "diagnose/rules.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Catalogue, EachSlugHasAPageAndEachPageASlug) {
  std::set<std::string> slugs;
  for (const Rule& rule : all_rules())
    EXPECT_TRUE(slugs.insert(rule.slug).second) << rule.slug << " is the slug of two rules";
  std::set<std::string> pages;
  for (const auto& entry : fs::directory_iterator(FORKSIGHT_HAZARD_PAGES)) {
    if (entry.path().extension() == ".md") pages.insert(entry.path().stem().string());
  }
  EXPECT_EQ(slugs, pages);
}

TEST(Catalogue, SlugsAndTitlesHaveTheRequiredForm) {
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(std::regex_match(rule.slug, std::regex("[a-z]+(-[a-z]+)*"))) << rule.slug;
    const std::string title = rule.title;
    EXPECT_FALSE(title.ends_with(".")) << title;
    EXPECT_LE(title.size(), 80U) << title;
  }
}

TEST(Catalogue, EachPageHasTheRequiredHeadings) {
  for (const Rule& rule : all_rules()) {
    const std::string page = read(fs::path(FORKSIGHT_HAZARD_PAGES) / (std::string(rule.slug) + ".md"));
    EXPECT_TRUE(page.starts_with("# " + std::string(rule.slug) + "\n")) << rule.slug;
    std::size_t last = 0;
    for (const char* heading :
         {"\n## What happens\n", "\n## How to recognise it without forksight\n", "\n## Smallest example\n",
          "\n## Fixes\n", "\n## What forksight can cure\n", "\n## False positives\n"}) {
      const std::size_t at = page.find(heading);
      EXPECT_NE(at, std::string::npos) << rule.slug << " has no" << heading;
      EXPECT_GT(at, last) << rule.slug << ": this heading is in the wrong place:" << heading;
      last = at;
    }
  }
}

}  // namespace
}  // namespace forksight
