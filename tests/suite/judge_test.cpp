// Tests the judge: it must call a case red for each kind of wrong verdict, and green for the right one. The programs of
// the cases are scripts. Another script replaces forksight, and writes the reports that the test chooses.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "suite/made_suite.hpp"

namespace forksight {
namespace {

using Json = nlohmann::json;
using suite::CaseResult;
using suite::State;
using test::all_lines;
using test::changed;
using test::good_finding;
using test::MadeSuite;
using test::report_of;

void expect_red(const CaseResult& result, const std::vector<std::string>& words) {
  const std::string lines = all_lines(result);
  EXPECT_EQ(result.state, State::kRed) << lines;
  for (const std::string& word : words) EXPECT_NE(lines.find(word), std::string::npos) << word << " in:\n" << lines;
}

void expect_green(const CaseResult& result, std::size_t parts) {
  EXPECT_EQ(result.state, State::kGreen) << all_lines(result);
  EXPECT_EQ(all_lines(result), "");
  EXPECT_EQ(result.parts.size(), parts);
}

TEST(Judge, IsGreenForWhatIsExpected) {
  MadeSuite made;
  expect_green(made.judge(), 3);
}

TEST(Judge, IsRedForEachWrongField) {
  const struct {
    const char* path;
    Json value;
    const char* word;
  } wrongs[] = {{"/rule", "orphaned-rwlock", "not in the report"},
                {"/cause", "likely", "certainty: expected proven"},
                {"/outcome", "error", "outcome: expected hang"},
                {"/culprit/name", "n (mutex)", "lock: expected m"},
                {"/culprit/kind", "pool", "lock: expected m"},
                {"/culprit/holder/name", "main", "holder: expected worker"},
                {"/culprit/holder", nullptr, "holder: expected worker"},
                {"/culprit/holder/start_routine", "", "start: expected worker_main"},
                {"/culprit", nullptr, "no report (exit status 0): it is not a JSON object"},
                {"/victims", Json::array(), "victims: expected 1"},
                {"/count", 2, "merged 2 times, expected once"}};
  for (const auto& wrong : wrongs) {
    SCOPED_TRACE(wrong.path);
    MadeSuite made;
    made.observed = report_of({changed(good_finding(), wrong.path, wrong.value)});
    expect_red(made.judge(), {wrong.word});
  }
}

TEST(Judge, ComparesCulpritAndLibrary) {
  for (const char* field : {"culprit=other", "library=other", "merged=2"}) {
    MadeSuite made;
    made.source.insert(made.source.find(" lock=m"), std::string(" ") + field);
    expect_red(made.judge(), {std::string("expected ") + std::string(field).substr(std::string(field).find('=') + 1)});
  }
  MadeSuite made;
  made.source.insert(made.source.find(" lock=m"), " 'culprit=m (mutex)' library=case merged=1");
  made.parts = {"observed"};
  expect_green(made.judge(), 1);
}

TEST(Judge, WantsExactlyTheExpectedFindings) {
  MadeSuite none;
  none.observed = report_of({});
  expect_red(none.judge(), {"not in the report"});
  MadeSuite two;
  two.observed = report_of({good_finding(), good_finding()});
  expect_red(two.judge(), {"not expected: orphaned-mutex"});
  MadeSuite repaired;
  repaired.variant = "repaired";
  expect_red(repaired.judge(), {"not expected: orphaned-mutex"});
  repaired.observed = report_of({});
  expect_green(repaired.judge(), 2);
}

TEST(Judge, ComparesStacksFrameByFrame) {
  const Json frames = good_finding()["culprit"]["stack"];
  Json other_line = frames[2];
  other_line["line"] = 8;
  Json other_file = frames[2];
  other_file["file"] = "/src/other.c";
  for (const Json& wrong :
       {Json::array({frames[1]}), Json::array({frames[2], frames[3]}), Json::array({frames[1], frames[3], frames[2]}),
        Json::array(), Json::array({frames[1], other_line}), Json::array({frames[1], other_file})}) {
    SCOPED_TRACE(wrong.dump());
    MadeSuite made;
    made.observed = report_of({changed(good_finding(), "/culprit/stack", wrong)});
    expect_red(made.judge(), {"outer (case.c:6)"});
  }
}

TEST(Judge, IsRedForACureThatDoesNotCure) {
  MadeSuite hangs;
  hangs.cured = report_of({good_finding()});
  expect_red(hangs.judge(), {"--omp=rebuild", "expected: orphaned-mutex cured"});
  MadeSuite silent;
  silent.cured = report_of({});
  expect_red(silent.judge(), {"expected: orphaned-mutex cured"});
  MadeSuite prints;
  prints.program = "echo 'child: 1 threads'";
  expect_red(prints.judge(), {"expected a line \"child: 2 threads\""});
}

TEST(Judge, ComparesOtherOutcomes) {
  MadeSuite made;
  const std::string cured = "EXPECT-CURED: --omp=rebuild ";
  made.source.replace(made.source.find(cured), cured.size(),
                      "EXPECT-RUN: --omp=rebuild outcome=error status=3 says=refused ");
  const Json error = changed(changed(good_finding(), "/outcome", "error"), "/chain", Json::array({"It was refused."}));
  made.cured = report_of({good_finding()});
  expect_red(made.judge(), {"expected: orphaned-mutex error", "no finding says: refused"});
  made.cured = report_of({error});
  expect_red(made.judge(), {"exit status: expected 3, got 0"});
  made.source.replace(made.source.find("status=3"), 8, "status=0");
  expect_green(made.judge(), 3);
  made.source.replace(made.source.find("outcome=error"), 13, "outcome=none ");
  expect_red(made.judge(), {"expected: nothing"});
  made.source.replace(made.source.find("outcome=none "), 13, "outcome=error rule=lost-wakeup ");
  expect_red(made.judge(), {"expected: lost-wakeup error"});
  made.cured = report_of({changed(error, "/rule", "lost-wakeup")});
  expect_green(made.judge(), 3);
}

TEST(Judge, PassesOnTheOptionsOfACase) {
  MadeSuite made;
  const std::string cured = "EXPECT-CURED: --omp=rebuild stdout=\"child: 2 threads\"";
  const std::string before = made.source;
  made.source.replace(made.source.find(cured), cured.size(), "EXPECT-OPTIONS: --omp=rebuild");
  made.observed = report_of({});
  made.cured = report_of({good_finding()});
  for (const char* variant : {"", "O2"}) {
    made.variant = variant;
    expect_green(made.judge(), 2);
  }
  made.variant = "repaired";
  expect_red(made.judge(), {"not expected: orphaned-mutex"});
  made.variant = "";
  made.source = before;
  made.source.replace(made.source.find(cured), cured.size(), "EXPECT-OPTIONS:");
  expect_red(made.judge(), {"not in the report"});
}

TEST(Judge, ComparesTheBareProgram) {
  MadeSuite hangs;
  hangs.source.replace(hangs.source.find("BARE: ok"), 8, "BARE: hang");
  expect_red(hangs.judge(), {"expected hang, seen ok"});
  MadeSuite fails;
  fails.program = "exit 3";
  expect_red(fails.judge(), {"expected ok, seen error (status 3)", "exit status: expected 0, got 3"});
  MadeSuite spins;
  spins.program = "while :; do :; done";
  spins.parts = {"bare"};
  expect_red(spins.judge(), {"expected ok, seen spin", "--- process"});
}

TEST(Judge, EndsHangingPrograms) {
  MadeSuite made;
  made.program = "echo $$ >> \"$(dirname \"$0\")/pids\"; exec sleep infinity";
  made.limit = std::chrono::seconds(5);  // in this time the program writes its pid, also on a busy machine
  expect_red(made.judge(), {"expected ok, seen hang", "--- process", "did not end within 5.0 s"});
  std::ifstream pids(made.folder() / "pids");
  int count = 0;
  for (pid_t pid = 0; pids >> pid; ++count) EXPECT_EQ(::kill(pid, 0), -1) << pid;
  EXPECT_EQ(count, 3);
}

// The script that replaces forksight leaves a process behind, in a session of its own. The judge must end this process
// and report it.
TEST(Judge, IsRedForAProcessThatIsLeftBehind) {
  MadeSuite made;
  made.stand_in = "if [ \"$1\" = run ]; then setsid sleep infinity & echo $! >> \"$(dirname \"$0\")/pids\"; fi\n";
  made.parts = {"observed"};
  expect_red(made.judge(), {"left processes of the case behind"});
  std::ifstream pids(made.folder() / "pids");
  pid_t pid = 0;
  ASSERT_TRUE(pids >> pid);
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Judge, ComparesTheReportsOfWhyAndCore) {
  MadeSuite made;
  made.program = "exec sleep infinity";
  made.source.replace(made.source.find("BARE: ok"), 8, "BARE: hang");
  made.source += "// EXPECT-CORE: orphaned-mutex proven hang\n";
  made.parts = {"bare", "why", "core"};
  // A script replaces gcore, too. Its core is an empty file.
  made.write("gcore", "#!/usr/bin/env bash\ntouch \"$2.$3\"\n", true);
  made.environment = {{"PATH", made.folder().string() + ":" + std::getenv("PATH")}};
  expect_green(made.judge(), 3);
  made.why = report_of({changed(good_finding(), "/cause", "likely")});
  expect_red(made.judge(), {"why: as seen by", "certainty: expected proven, the report has proven/likely"});
  made.why = report_of({good_finding()});
  made.core = report_of({});
  expect_red(made.judge(), {"core: as seen by", "not in the report"});
  made.core = Json::array({1});
  expect_red(made.judge(), {"no report"});
}

// Without gcore, the judge cannot get a core. The case must be skipped, not green.
TEST(Judge, SkipsACaseThatItCannotJudge) {
  MadeSuite made;
  made.program = "exec /bin/sleep infinity";
  made.source.replace(made.source.find("BARE: ok"), 8, "BARE: hang");
  made.source += "// EXPECT-CORE: none\n";
  made.parts = {"core"};
  made.write("bash", "", false);
  std::filesystem::create_symlink("/bin/bash", made.folder() / "only_bash");
  std::filesystem::create_directory(made.folder() / "bin");
  std::filesystem::create_symlink("/bin/bash", made.folder() / "bin" / "bash");
  made.environment = {{"PATH", (made.folder() / "bin").string()}};
  const CaseResult result = made.judge();
  EXPECT_EQ(result.state, State::kSkipped) << all_lines(result);
  EXPECT_NE(all_lines(result).find("there is no gcore"), std::string::npos) << all_lines(result);
}

TEST(Judge, IsRedWithoutAReport) {
  MadeSuite made;
  made.stand_in = "if [ \"$1\" = run ]; then exit 5; fi\n";
  expect_red(made.judge(), {"no report (exit status 5)"});
  made.stand_in = "";
  made.observed = Json::array();
  expect_red(made.judge(), {"no report (exit status 0): it is not a JSON object"});
}

TEST(Judge, HasATimeLimitForTheWholeCase) {
  MadeSuite made;
  made.stand_in = "if [ \"$1\" = run ]; then exec sleep infinity; fi\n";
  made.case_limit = std::chrono::seconds(2);
  expect_red(made.judge(), {"did not end within 2 s in all"});
}

TEST(Judge, SetsTheEnvironmentOfACase) {
  MadeSuite made;
  made.program = "echo \"child: $THREADS threads\"";
  expect_red(made.judge(), {"expected a line"});
  made.environment = {{"THREADS", "2"}};
  expect_green(made.judge(), 3);
}

// Makes a case whose program hangs, and about which `run` must report nothing.
void make_silent(MadeSuite& made) {
  made.source = "// EXPECT-BARE: hang\n// EXPECT-NONE\n// EXPECT-WHY: none\n";
  made.program = "exec sleep 60";
  made.observed = report_of({});
  made.why = report_of({});
  made.parts = {"observed"};
}

TEST(Judge, EndsARunThatReportsNothingAboutAHang) {
  MadeSuite made;
  make_silent(made);
  expect_green(made.judge(), 1);
}

TEST(Judge, IsRedIfAProgramThatShouldHangEnds) {
  MadeSuite made;
  make_silent(made);
  made.program = "exit 0";
  expect_red(made.judge(), {"but should go on"});
}

TEST(Judge, IsRedForAnUnexpectedFindingAboutAHang) {
  MadeSuite made;
  make_silent(made);
  made.observed = report_of({good_finding()});
  expect_red(made.judge(), {"not expected: orphaned-mutex"});
}

}  // namespace
}  // namespace forksight
