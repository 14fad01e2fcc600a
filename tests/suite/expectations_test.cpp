// Tests the code that reads expectations from the comments of a source file.
#include "suite/expectations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suite/made_suite.hpp"
#include "suite/shell_words.hpp"

namespace forksight {
namespace {

using suite::Expectations;
using test::MadeSuite;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(SuiteExpectations, AreReadCompletely) {
  const MadeSuite made;
  const auto read = made.read();
  ASSERT_TRUE(read) << read.error();
  const Expectations& expected = read.value();
  EXPECT_EQ(expected.bare, "ok");
  ASSERT_EQ(expected.findings.size(), 1U);
  EXPECT_EQ(expected.findings[0].rule, "orphaned-mutex");
  EXPECT_THAT(expected.findings[0].fields, ElementsAre(Pair("lock", "m"), Pair("holder", "worker"),
                                                       Pair("start", "worker_main"), Pair("victims", "1")));
  ASSERT_EQ(expected.findings[0].stacks.size(), 1U);
  const auto& frames = expected.findings[0].stacks[0].second;
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[1].function, "outer");
  EXPECT_EQ(frames[1].file, "case.c");
  EXPECT_EQ(frames[1].line, 6);
  ASSERT_EQ(expected.runs.size(), 1U);
  EXPECT_THAT(expected.runs[0].options, ElementsAre("--omp=rebuild"));
  EXPECT_THAT(expected.runs[0].printed, ElementsAre("child: 2 threads"));
  // `why` examines the program from outside, so it cannot find out where the lock was taken.
  ASSERT_EQ(expected.why.size(), 1U);
  EXPECT_THAT(expected.why[0].stacks, IsEmpty());
  EXPECT_FALSE(expected.core.has_value());
}

TEST(SuiteExpectations, RefuseInvalidSources) {
  const std::string good = MadeSuite().source;
  for (const std::string& source :
       {std::string(), std::string("// EXPECT-NONE\n"), std::string("// EXPECT-BARE: ok\n"),
        std::string("// EXPECT-BARE: maybe\n// EXPECT-NONE\n"), good + "// EXPECT-NONE\n",
        replaced(good, "@here", "@nowhere"), replaced(good, "@here", "@other.c:here"),
        replaced(good, "holder=", "owner="), good + "// EXPECT-LATER: x\n", good + "x();  // MARK: here\n",
        replaced(good, "stdout=", "stderr="), replaced(good, "EXPECT-CURED:", "EXPECT-RUN: status=x outcome=error"),
        replaced(good, "EXPECT-CURED:", "EXPECT-RUN: status=3"), good + "// EXPECT: a proven\n",
        replaced(good, "threads\"", "threads"), replaced(good, "STACK: culprit", "STACK: nobody")}) {
    SCOPED_TRACE(source);
    MadeSuite made;
    made.source = source;
    EXPECT_FALSE(made.read());
  }
}

TEST(SuiteExpectations, OfAVariantReplaceThoseOfAllVariants) {
  MadeSuite made;
  made.source =
      "// EXPECT-BARE: hang\n// EXPECT-BARE(quick): ok\n// EXPECT: a proven hang\n// EXPECT(other): b likely hang\n"
      "// EXPECT-NONE(quick)\n// EXPECT-WHY(other): c possible hang\n// EXPECT-CORE: none\n"
      "// EXPECT-CURED(repaired): --x stdout=1\n# EXPECT-OPTIONS: --y 'z z'\n";
  made.variant = "quick";
  auto read = made.read();
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->bare, "ok");
  EXPECT_THAT(read->findings, IsEmpty());
  made.variant = "other";
  read = made.read();
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->bare, "hang");
  EXPECT_EQ(read->findings.at(0).rule, "b");
  EXPECT_EQ(read->why.at(0).rule, "c");
  made.variant = "third";
  read = made.read();
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->findings.at(0).rule, "a");
  EXPECT_EQ(read->why.at(0).rule, "a");
  ASSERT_TRUE(read->core.has_value());
  EXPECT_THAT(*read->core, IsEmpty());
  EXPECT_THAT(read->options, ElementsAre("--y", "z z"));
  made.variant = "repaired";
  read = made.read();
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->bare, "ok");
  EXPECT_THAT(read->findings, IsEmpty());
  EXPECT_EQ(read->runs.size(), 1U);
}

TEST(SuiteExpectations, OfWhyLackThePositionOfAHandler) {
  MadeSuite made;
  made.source = "// EXPECT-BARE: hang\n// EXPECT: a proven hang 'culprit=handler (2nd of 3)' library=libnone.so.1\n";
  auto read = made.read();
  ASSERT_TRUE(read) << read.error();
  EXPECT_THAT(read->findings.at(0).fields,
              ElementsAre(Pair("culprit", "handler (2nd of 3)"), Pair("library", "libnone.so.1")));
  EXPECT_THAT(read->why.at(0).fields, ElementsAre(Pair("culprit", "handler"), Pair("library", "libnone.so.1")));
  made.source += "// EXPECT-UNKNOWN: nobody sees it\n";
  read = made.read();
  ASSERT_TRUE(read) << read.error();
  EXPECT_THAT(read->why, IsEmpty());
}

TEST(ShellWords, AreSplitAndJoined) {
  const auto words = suite::split_words(R"( a 'b "c' "d \" \\ e" f\ g '' --x="1 2")");
  ASSERT_TRUE(words) << words.error();
  EXPECT_THAT(words.value(), ElementsAre("a", "b \"c", "d \" \\ e", "f g", "", "--x=1 2"));
  EXPECT_FALSE(suite::split_words("a 'b"));
  EXPECT_EQ(suite::join_words(std::vector<std::string>{"a", "b c", "", "d'e"}), "a 'b c' '' 'd'\"'\"'e'");
  const std::vector<std::string> odd = {"*", "$x", "`y`", "\n"};
  EXPECT_EQ(suite::split_words(suite::join_words(odd)).value(), odd);
}

}  // namespace
}  // namespace forksight
