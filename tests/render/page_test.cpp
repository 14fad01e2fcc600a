#include "render/page.hpp"

#include <gtest/gtest.h>

#include <string>

#include "render/escapes.hpp"

namespace forksight::render {
namespace {

Page page_of(std::size_t columns) { return Page({.columns = columns}); }

TEST(Page, WrapsAtItsWidth) {
  Page page = page_of(40);
  page.paragraph(Style::kPlain,
                 "0123456789 0123456789 0123456789 0123456 0123456789 012345678 0123456789 0123456789 x");
  EXPECT_EQ(page.take(), "0123456789 0123456789 0123456789 0123456\n0123456789 012345678 0123456789\n0123456789 x\n");
}

TEST(Page, NoLineIsACommandOfGitHubActions) {
  Page page({.columns = 20});
  page.paragraph(Style::kPlain, "a/long/name/of/file ::error::injected");
  page.paragraph(Style::kPlain, "::warning::too", 4);
  page.paragraph(Style::kPlain, "std::string f::g", 0);
  const std::string text = page.take();
  EXPECT_EQ(text.find("\n::"), std::string::npos) << text;
  EXPECT_NE(text.find("\n\\x3a:error::injected\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    \\x3a:warning::too\n"), std::string::npos) << text;
  EXPECT_NE(text.find("std::string f::g\n"), std::string::npos) << text;
}

TEST(Page, CutsNoWord) {
  const std::string path = "/a/path/that/is/much/longer/than/forty/columns/so/it/stands/alone.cpp";
  Page page = page_of(40);
  page.item(Style::kFaint, "-", "see " + path + " for it");
  EXPECT_EQ(page.take(), "    - see\n      " + path + "\n      for it\n");
}

TEST(Page, DoesNotWrapHeadlinesIfTheWidthIsNotKnown) {
  const std::string text = "child 2000 " + std::string(60, 'x') + " " + std::string(60, 'y');
  Page page{PageOptions{}};
  page.headline(Style::kBold, text);
  page.paragraph(Style::kPlain, text);
  EXPECT_EQ(page.take(), text + "\nchild 2000 " + std::string(60, 'x') + "\n" + std::string(60, 'y') + "\n");
  Page narrow = page_of(80);
  narrow.headline(Style::kBold, text);
  EXPECT_EQ(narrow.take(), "child 2000 " + std::string(60, 'x') + "\n    " + std::string(60, 'y') + "\n");
}

TEST(Page, PutsThePlaceOnItsOwnLineIfThereIsNoRoom) {
  const Row row{.name = "cache_lookup", .place = "src/cache/lookup.cpp:1031", .note = "(inlined)"};
  Page wide = page_of(80);
  wide.row(row);
  EXPECT_EQ(wide.take(), "      cache_lookup              src/cache/lookup.cpp:1031 (inlined)\n");
  Page narrow = page_of(40);
  narrow.row(row);
  EXPECT_EQ(narrow.take(), "      cache_lookup\n          src/cache/lookup.cpp:1031\n          (inlined)\n");
}

TEST(Page, WrapsLongNames) {
  Page page = page_of(40);
  page.row({.name = "shop::total(std::vector<int, std::allocator<int> > const&)", .place = "shop.cpp:3"});
  EXPECT_EQ(page.take(),
            "      shop::total(std::vector<int,\n        std::allocator<int> > const&)\n          shop.cpp:3\n");
}

TEST(Page, PutsLabelsOnTheirOwnLinesOnANarrowPage) {
  Page wide = page_of(60);
  wide.labelled("Held by", "thread 7");
  EXPECT_EQ(wide.take(), "  Held by       thread 7\n");
  Page narrow = page_of(40);
  narrow.labelled("Held by", "thread 7");
  narrow.labelled("", "made here:");
  narrow.list("could be ended by:", {"process 1", "process 2"});
  EXPECT_EQ(narrow.take(),
            "  Held by\n    thread 7\n    made here:\n        could be ended by:\n          process 1\n          "
            "process 2\n");
}

TEST(Page, ColoursEachLineByItself) {
  Page page({.colour = true, .columns = 40});
  page.headline(Style::kBold, "0123456789 0123456789 0123456789 012345 0123456789");
  EXPECT_EQ(page.take(), "\x1b[1m0123456789 0123456789 0123456789 012345\x1b[0m\n    \x1b[1m0123456789\x1b[0m\n");
}

TEST(Page, LinksOnlyInColour) {
  const Row row{.name = "main", .place = "a.cpp:3", .path = "/src/a;b.cpp"};
  Page coloured({.colour = true, .columns = 80, .link_host = "host"});
  coloured.row(row);
  const std::string text = coloured.take();
  EXPECT_NE(text.find("\x1b]8;;file://host/src/a%3Bb.cpp\x1b\\\x1b[2ma.cpp:3\x1b[0m\x1b]8;;\x1b\\"), std::string::npos)
      << text;
  Page plain({.columns = 80, .link_host = "host"});
  plain.row(row);
  EXPECT_EQ(plain.take(), test::without_escapes(text));
}

}  // namespace
}  // namespace forksight::render
