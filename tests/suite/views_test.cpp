// Tests the text of each format about a run of the suite.
#include "suite/views.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace forksight {
namespace {

using suite::Case;
using suite::CaseResult;
using suite::RunView;
using suite::State;
using testing::HasSubstr;
using testing::Not;

Case made_case(const std::string& name, const std::string& folder) {
  Case one;
  one.name = name;
  one.folder = folder;
  one.program = "/x/" + name;
  return one;
}

class SuiteViews : public testing::Test {
 protected:
  void SetUp() override {
    view_.results = {result(0, State::kGreen), result(1, State::kRed), result(2, State::kSkipped)};
    view_.results[0].parts = {{"bare", State::kGreen, "/x/good", {}, 0.5}};
    view_.results[1].parts = {
        {"bare", State::kGreen, "/x/bad", {}, 0.5},
        {"--omp=<x>", State::kRed, "run \"a\" & b", {"  expected \x1b[1m]]> & <hang>", "  seen \xff"}, 1}};
    view_.results[2].lines = {"python3 has no module torch"};
    view_.results[2].package = "python3-torch";
    view_.seconds = 2;
    view_.suite = "/suite";
  }

  CaseResult result(std::size_t index, State state) const {
    CaseResult made;
    made.which = &cases_[index];
    made.expected.bare = "ok";
    made.state = state;
    made.seconds = 1.25;
    return made;
  }

  std::vector<Case> cases_ = {made_case("good", "locks"), made_case("bad", "openmp"), made_case("lacks", "python")};
  RunView view_;
};

TEST_F(SuiteViews, TableHasARowForEachCaseAndTheDetailsOfRedOnes) {
  const std::string text = suite::run_as_table(view_);
  EXPECT_THAT(text, HasSubstr("good   ok       1.2 s"));
  EXPECT_THAT(text, HasSubstr("lacks  skipped  1.2 s  (none)  python3 has no module torch"));
  EXPECT_THAT(text, HasSubstr("\nbad: red\n--omp=<x>: as seen by `run \"a\" & b`:\n  expected \\x1b[1m]]> & <hang>\n"));
  EXPECT_THAT(text, HasSubstr("to repeat: forksight suite run bad\n"));
  EXPECT_THAT(text, testing::EndsWith("\n3 cases: 1 ok, 1 red, 1 skipped and not judged, in 2.0 s\n"));
  EXPECT_THAT(text, Not(HasSubstr("lacks: skipped")));
  view_.only_bad = true;
  EXPECT_THAT(suite::run_as_table(view_), Not(HasSubstr("good")));
}

TEST_F(SuiteViews, StrictMakesSkipsRed) {
  view_.is_strict = true;
  const std::string text = suite::run_as_table(view_);
  EXPECT_THAT(text, HasSubstr("\nlacks: skipped\n  python3 has no module torch\n  Debian's package: python3-torch\n"));
  EXPECT_THAT(text, HasSubstr("1 skipped, which is red here"));
  EXPECT_THAT(suite::run_as_tap(view_), HasSubstr("not ok 3 - lacks\n"));
  EXPECT_THAT(suite::run_as_junit(view_), HasSubstr("tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\""));
}

TEST_F(SuiteViews, TapNumbersAndExplains) {
  EXPECT_EQ(suite::run_as_tap(view_),
            "TAP version 14\n1..3\nok 1 - good\nnot ok 2 - bad\n  ---\n  message: |\n"
            "    --omp=<x>: as seen by `run \"a\" & b`:\n      expected \\x1b[1m]]> & <hang>\n      seen \\xff\n"
            "    to repeat: forksight suite run bad\n  ...\nok 3 - lacks # SKIP python3 has no module torch\n");
}

TEST_F(SuiteViews, TapOfAStoppedRunBailsOut) {
  view_.results[1] = result(1, State::kUnknown);
  view_.is_stopped = true;
  const std::string text = suite::run_as_tap(view_);
  EXPECT_THAT(text, HasSubstr("ok 1 - good\nok 3 - lacks"));
  EXPECT_THAT(text, testing::EndsWith("Bail out! stopped before the end\n"));
  EXPECT_THAT(suite::run_as_junit(view_), HasSubstr("<error message=\"stopped before its end\""));
  EXPECT_THAT(suite::describe_totals(view_), HasSubstr("1 not run to the end"));
}

TEST_F(SuiteViews, JunitEscapesWhatXmlCannotHold) {
  const std::string text = suite::run_as_junit(view_);
  EXPECT_THAT(
      text,
      HasSubstr("<failure message=\"--omp=&lt;x&gt;: expected \\x1b[1m]]&gt; &amp; &lt;hang&gt;\" type=\"red\">"));
  EXPECT_THAT(text, HasSubstr("  seen \\xff\n"));
  EXPECT_THAT(text, HasSubstr("<testcase name=\"good\" classname=\"forksight.suite.locks\" time=\"1.250\"/>"));
  EXPECT_THAT(text, HasSubstr("<skipped message=\"python3 has no module torch\"/>"));
}

TEST_F(SuiteViews, JsonContainsEverything) {
  const auto json = nlohmann::json::parse(suite::run_as_json(view_));
  EXPECT_EQ(json.at("totals").dump(), R"({"ok":1,"red":1,"skipped":1,"unknown":0})");
  EXPECT_EQ(json.at("cases").at(1).at("parts").at(1).at("state"), "red");
  EXPECT_EQ(json.at("cases").at(2).at("package"), "python3-torch");
}

}  // namespace
}  // namespace forksight
