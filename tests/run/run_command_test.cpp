// Starts `forksight run` as a program: exit statuses, streams, signals, and what remains on disk.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "proc/proc_fs.hpp"
#include "run_command_fixture.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;
using namespace test;

TEST_F(RunCommand, PassesTheStatusAndTheStreams) {
  const Outcome outcome = run({}, {kFixture, "write", "3"});
  EXPECT_EQ(exit_code(outcome.status), 3);
  EXPECT_EQ(outcome.output, "line one\n");
  EXPECT_EQ(outcome.error, "line two\nforksight: nothing found in 1 process\n");
  EXPECT_FALSE(fs::exists(out()));
}

// The trace records a file lock that is held at a fork. If the lock causes no finding, forksight removes the trace.
TEST_F(RunCommand, TheTraceOfARunWithoutFindingsIsRemoved) {
  const std::string lock = (folder_ / "lock").string();
  const Outcome outcome = run({}, {"flock", lock, "sh", "-c", "true; true"});
  EXPECT_EQ(exit_code(outcome.status), 0);
  EXPECT_EQ(outcome.error, "forksight: nothing found in 1 process\n");
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(RunCommand, AFolderThatWasThereStays) {
  fs::create_directory(out());
  run({}, {kFixture, "write"});
  EXPECT_TRUE(fs::exists(out()));
  EXPECT_TRUE(run_folders().empty());
}

// forksight asks Python for its stacks by a signal. Here, a forked child of Python calls exec. forksight must not send
// the signal to the new program, because the signal would end a program without a handler. The new program hangs by
// itself, so forksight must not report the fork as the cause.
TEST_F(RunCommand, AProgramAfterAnExecIsNotAskedForPythonStacks) {
  const std::string script =
      "import os, sys, threading\n"
      "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
      "child = os.fork()\n"
      "if child == 0: os.execv(sys.argv[1], sys.argv[1:])\n"
      "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -9)\n";
  const Words options{"--hang-after", "0.3", "--on-hang", "kill"};
  const Outcome caught = run_idle(options, {"/usr/bin/python3", "-c", script, kFixture, "dead-with-handlers"});
  EXPECT_EQ(caught.output, "") << "forksight sent its signal to the program";
  EXPECT_EQ(exit_code(caught.status), 128 + SIGTERM)
      << "the handlers of the program may wake it, so forksight must not kill it";
  EXPECT_NE(caught.error.find("nothing found"), std::string::npos) << caught.error;
  const Outcome dead = run(options, {"/usr/bin/python3", "-c", script, kFixture, "dead"});
  EXPECT_EQ(dead.output, "r") << "forksight sent its signal to the program";
  EXPECT_NE(dead.error.find("CERTAIN HANG, cause unknown: deadlock"), std::string::npos) << dead.error;
  EXPECT_NE(dead.error.find("1 finding (1 certain)"), std::string::npos) << dead.error;
}

TEST_F(RunCommand, ASignalThatEndsCmdGives128PlusItsNumber) {
  const Outcome outcome = run({"-q"}, {"sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(exit_code(outcome.status), 128 + SIGTERM);
  EXPECT_EQ(outcome.error, "");
}

TEST_F(RunCommand, ArgumentsArriveUnchanged) {
  const Words arguments{"[1,2]", "", "a b", "--", "-q", "--out", "{}", "%s", "\"x", "run"};
  Words program{"printf", "<%s>"};
  program.insert(program.end(), arguments.begin(), arguments.end());
  std::string expected;
  for (const std::string& argument : arguments) expected += "<" + argument + ">";
  EXPECT_EQ(run({"-q"}, program).output, expected);
}

TEST_F(RunCommand, ACommandThatCannotBeRunGivesAnErrorOfOneLine) {
  const Outcome missing = run({}, {"no-such-command"});
  EXPECT_EQ(exit_code(missing.status), 127);
  EXPECT_EQ(missing.error, "forksight: error: no-such-command: command not found\n");
  const Outcome absent = run({}, {"./no-such-file"});
  EXPECT_EQ(exit_code(absent.status), 127);
  std::ofstream(folder_ / "text") << "no program\n";
  const Outcome refused = run({}, {"./text"});
  EXPECT_EQ(exit_code(refused.status), 126);
  EXPECT_EQ(refused.error, "forksight: error: ./text: cannot be run: Permission denied\n");
  std::ofstream(folder_ / "script") << "#!/no/such/shell\n";
  fs::permissions(folder_ / "script", fs::perms::owner_all);
  EXPECT_EQ(exit_code(run({}, {"./script"}).status), 126);
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(RunCommand, UsageErrorsGiveStatusTwoAndStartNothing) {
  const Words good{kFixture, "write"};
  for (const Words& options : std::vector<Words>{{"--no-such-option"},
                                                 {"--omp", "magic"},
                                                 {"--on-orphan", "pray"},
                                                 {"--on-hang", "wait"},
                                                 {"--kill-on", "possible"},
                                                 {"--hang-after", "0"},
                                                 {"--hang-after", "soon"},
                                                 {"--format", "yaml"},
                                                 {"--format", "json"},
                                                 {"--keep", "0"},
                                                 {"--keep", "some"},
                                                 {"--fail-on", "maybe"},
                                                 {"--error-exitcode", "256"},
                                                 {"--out", "/proc/nowhere"},
                                                 {"--report", "/no/such/folder/report"}}) {
    const Outcome outcome = run(options, good);
    EXPECT_EQ(exit_code(outcome.status), 2) << options.front();
    EXPECT_EQ(outcome.output, "") << options.front();
    EXPECT_TRUE(outcome.error.starts_with("forksight: error: ")) << outcome.error;
  }
  EXPECT_EQ(exit_code(execute({FORKSIGHT_COMMAND, "run"}).status), 2);
  EXPECT_EQ(exit_code(execute({FORKSIGHT_COMMAND, "run", kFixture}).status), 2);
  EXPECT_EQ(exit_code(execute({FORKSIGHT_COMMAND, "run", "--"}).status), 2);
}

TEST_F(RunCommand, AFindingGivesTheErrorExitcode) {
  const Outcome plain = run({}, {kHazard, "failed"});
  EXPECT_EQ(exit_code(plain.status), 5);
  EXPECT_NE(plain.error.find(kSlug), std::string::npos) << plain.error;
  EXPECT_TRUE(
      last_line(plain.error).starts_with("forksight: 1 finding (1 certain) in 2 processes; traces in forksight-out/"))
      << plain.error;
  EXPECT_EQ(exit_code(run({"--error-exitcode", "9"}, {kHazard, "failed"}).status), 9);
  EXPECT_EQ(exit_code(run({"--error-exitcode", "0"}, {kHazard, "failed"}).status), 0);
  EXPECT_EQ(exit_code(run({"--error-exitcode", "9"}, {kFixture, "write", "3"}).status), 3);
}

TEST_F(RunCommand, FailOnSetsTheThreshold) {
  const Outcome likely = run({"--error-exitcode", "9"}, {kHazard, "killed"});
  EXPECT_EQ(exit_code(likely.status), 9);
  EXPECT_NE(likely.error.find("1 finding (1 likely)"), std::string::npos) << likely.error;
  EXPECT_EQ(exit_code(run({"--error-exitcode", "9", "--fail-on", "possible"}, {kHazard, "killed"}).status), 9);
  EXPECT_EQ(exit_code(run({"--error-exitcode", "9", "--fail-on", "certain"}, {kHazard, "killed"}).status), 6);
  EXPECT_EQ(exit_code(run({"--error-exitcode", "9", "--fail-on", "certain"}, {kHazard, "failed"}).status), 9);
}

TEST_F(RunCommand, AHangIsNamedAtOnceAndKilledOnDemand) {
  FixtureProcess process(command({"--on-hang", "kill"}, {kHazard, "hang"}), true, folder_.string());
  ASSERT_TRUE(process.wait_ready());
  const auto hung = std::chrono::steady_clock::now();
  ASSERT_TRUE(process.wait_stderr(kSlug)) << process.stderr_text();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - hung;
  std::cout << "named " << took.count() << " s after the hang\n";
  RecordProperty("seconds_to_report", std::to_string(took.count()));
  EXPECT_LT(took.count(), 10.0);
  EXPECT_EQ(exit_code(process.wait_end()), 128 + SIGKILL);
  process.wait_group_end();  // does not return while a process of the group is left
  const std::string error = process.stderr_text();
  EXPECT_EQ(error.find("CERTAIN HANG"), error.rfind("CERTAIN HANG")) << error;
  EXPECT_NE(last_line(error).find("1 finding (1 certain)"), std::string::npos) << error;
  EXPECT_NE(error.find("Waiting"), std::string::npos) << "the parent is not reported as waiting: " << error;
}

TEST_F(RunCommand, AHangIsWaitedForByDefault) {
  FixtureProcess process(command({"--hang-after", "0.2"}, {kHazard, "hang"}), true, folder_.string());
  ASSERT_TRUE(process.wait_stderr(kSlug)) << process.stderr_text();
  // The hang lasts and forksight examines it again, but does not report it a second time.
  EXPECT_TRUE(wait_for_looks(process)) << process.stderr_text();
  ASSERT_EQ(::kill(process.pid(), SIGTERM), 0);
  EXPECT_EQ(exit_code(process.wait_end()), 128 + SIGTERM);
  const std::string error = process.stderr_text();
  EXPECT_EQ(error.find("CERTAIN HANG"), error.rfind("CERTAIN HANG")) << error;
}

// The mutant of the command switches off the rule that would explain the hang.
TEST_F(RunCommand, AHangThatNoRuleExplainsIsReportedAndNotKilled) {
  Words words = command({"--on-hang", "kill", "--hang-after", "0.2"}, {kFixture, "pipe-self"});
  words[0] = FORKSIGHT_MUTANT;
  words.insert(words.begin(), {"/usr/bin/env", "FORKSIGHT_MUTED_RULE=pipe-held-open"});
  const Outcome outcome = run_idle(words);
  EXPECT_EQ(exit_code(outcome.status), 128 + SIGTERM);
  EXPECT_NE(outcome.error.find("no task can wake it, and no rule explains why"), std::string::npos) << outcome.error;
  EXPECT_TRUE(
      last_line(outcome.error).starts_with("forksight: no finding, but 1 unexplained hang in 1 process; traces in "))
      << outcome.error;
}

TEST_F(RunCommand, AHealthyProgramIsNotKilled) {
  for (const char* mode : {"idle-epoll", "dead-with-handlers"}) {
    const Outcome outcome = run_idle({"--on-hang", "kill", "--hang-after", "0.1"}, {kFixture, mode});
    EXPECT_EQ(exit_code(outcome.status), 128 + SIGTERM);
    EXPECT_TRUE(last_line(outcome.error).starts_with("forksight: nothing found in 1 process")) << outcome.error;
    EXPECT_EQ(outcome.error.find("HANG"), std::string::npos) << outcome.error;
  }
}

// Python waits for its own lock. Python's handler of Ctrl-C could end the wait, so forksight reports the hang as
// likely.
TEST_F(RunCommand, ALikelyHangIsKilledOnlyOnDemand) {
  const Words hang{"/usr/bin/python3", "-c",
                   "import os, signal, threading\n"
                   "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                   "os.write(1, b'r')\n"
                   "lock = threading.Lock(); lock.acquire(); lock.acquire()\n"};
  const Outcome spared = run_idle({"--on-hang", "kill", "--hang-after", "0.2"}, hang);
  EXPECT_EQ(exit_code(spared.status), 128 + SIGTERM) << spared.error;
  EXPECT_NE(spared.error.find("LIKELY HANG, cause unknown: deadlock"), std::string::npos) << spared.error;
  EXPECT_NE(spared.error.find("--kill-on likely would end it"), std::string::npos) << spared.error;
  const Outcome killed = run({"--on-hang", "kill", "--kill-on", "likely", "--hang-after", "0.2"}, hang);
  EXPECT_EQ(exit_code(killed.status), 128 + SIGKILL) << killed.error;
}

// The program reads from a pipe. According to /proc, only the program itself could write to this pipe, so forksight
// first reports a hang.
TEST_F(RunCommand, AHangIsWithdrawnIfItsProcessGoesOn) {
  const Outcome outcome = run({"--hang-after", "0.2", "--error-exitcode", "9"}, {kFixture, "woken-by-proc"});
  EXPECT_EQ(exit_code(outcome.status), 5) << outcome.error;
  EXPECT_NE(outcome.error.find("CERTAIN HANG: pipe-held-open"), std::string::npos) << outcome.error;
  EXPECT_NE(
      outcome.error.find("went on. So the hang that was reported above did not last, and its report is withdrawn"),
      std::string::npos)
      << outcome.error;
  EXPECT_TRUE(last_line(outcome.error).starts_with("forksight: nothing found in ")) << outcome.error;
}

TEST_F(RunCommand, AnInterruptPrintsTheDiagnosisFirst) {
  FixtureProcess process(command({"--hang-after", "3600"}, {kHazard, "handler"}), true, folder_.string());
  ASSERT_TRUE(process.wait_ready());
  ASSERT_EQ(::kill(process.pid(), SIGINT), 0);
  EXPECT_EQ(exit_code(process.wait_end()), 7);
  const std::string error = process.stderr_text();
  ASSERT_NE(error.find(kSlug), std::string::npos) << error;
  ASSERT_NE(error.find("interrupted"), std::string::npos) << error;
  EXPECT_LT(error.find(kSlug), error.find("interrupted"));
}

// A terminal sends the signal to both forksight and CMD. CMD ends before forksight has acted.
TEST_F(RunCommand, AnInterruptThatKillsCmdStillGetsADiagnosis) {
  FixtureProcess process(command({"--hang-after", "3600"}, {kHazard, "hang"}), true, folder_.string());
  ASSERT_TRUE(process.wait_ready());
  const auto children = proc::read_children(process.pid());
  ASSERT_EQ(children.size(), 1U);
  ASSERT_EQ(::kill(children.front(), SIGINT), 0);
  ASSERT_EQ(::kill(process.pid(), SIGINT), 0);
  EXPECT_EQ(exit_code(process.wait_end()), 128 + SIGINT);
  EXPECT_NE(process.stderr_text().find(kSlug), std::string::npos) << process.stderr_text();
}

TEST_F(RunCommand, ASecondInterruptStopsWaiting) {
  FixtureProcess process(command({"--hang-after", "3600"}, {kHazard, "stubborn"}), true, folder_.string());
  ASSERT_TRUE(process.wait_ready());
  const auto children = proc::read_children(process.pid());
  ASSERT_EQ(children.size(), 1U);
  ASSERT_EQ(::kill(process.pid(), SIGINT), 0);
  ASSERT_TRUE(process.wait_stderr(kSlug));
  ASSERT_EQ(::kill(process.pid(), SIGINT), 0);
  EXPECT_EQ(exit_code(process.wait_end()), 128 + SIGINT);
  EXPECT_EQ(::kill(children.front(), 0), 0) << "forksight must not end CMD";
}

TEST_F(RunCommand, SignalsFromOutsideArePassedOn) {
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGINT}) {
    FixtureProcess process(command({"-q"}, {kFixture, "take-signal"}), true, folder_.string());
    ASSERT_TRUE(process.wait_ready());
    ASSERT_EQ(::kill(process.pid(), signal), 0);
    EXPECT_EQ(exit_code(process.wait_end()), 40 + signal);
  }
}

TEST_F(RunCommand, AHungChildThatOutlivesCmdIsReported) {
  const Outcome outcome = run({}, {kHazard, "orphan"});
  EXPECT_EQ(exit_code(outcome.status), 4);
  EXPECT_NE(outcome.error.find(kSlug), std::string::npos) << outcome.error;
}

TEST_F(RunCommand, ADaemonIsNotWaitedFor) { EXPECT_EQ(exit_code(run({"-q"}, {kFixture, "daemon", "2"}).status), 2); }

TEST_F(RunCommand, TheReportReplacesTheNamedFile) {
  const fs::path file = folder_ / "report.txt";
  std::ofstream(file) << std::string(100'000, 'x');  // an old report, longer than the new one
  const Outcome outcome = run({"--report", "report.txt"}, {kHazard, "failed"});
  EXPECT_EQ(outcome.error.find("CERTAIN"), std::string::npos) << outcome.error;
  EXPECT_NE(last_line(outcome.error).find("report in report.txt"), std::string::npos) << outcome.error;
  const std::string report = read_whole(file);
  EXPECT_NE(report.find(kSlug), std::string::npos) << report;
  EXPECT_EQ(report.find("xxx"), std::string::npos);
}

TEST_F(RunCommand, AReportFileIsWholeWhileTheHangLasts) {
  FixtureProcess process(
      command({"-q", "--format", "json", "--report", "report.json", "--hang-after", "0.2"}, {kHazard, "hang"}), true,
      folder_.string());
  ASSERT_TRUE(process.wait_ready());
  nlohmann::json report;
  while (!report.is_object()) {
    report = nlohmann::json::parse(read_whole(folder_ / "report.json"), nullptr, false);
    ::usleep(10'000);
  }
  ASSERT_EQ(report.at("findings").size(), 1U);
  EXPECT_EQ(report.at("findings").at(0).at("rule"), kSlug);
  EXPECT_EQ(process.stderr_text(), "");
}

// The program writes to both standard streams. A JSON document among its lines could not be parsed.
TEST_F(RunCommand, JsonIsRefusedOnTheStreamsOfCmd) {
  const Outcome outcome = run({"--format", "json"}, {kFixture, "write"});
  EXPECT_EQ(exit_code(outcome.status), 2);
  EXPECT_EQ(outcome.output, "") << "the program was started";
  EXPECT_TRUE(outcome.error.starts_with("forksight: error: --format json: ")) << outcome.error;
  EXPECT_NE(outcome.error.find("--report FILE"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("--report -"), std::string::npos) << outcome.error;
  EXPECT_EQ(outcome.error.find('\n'), outcome.error.size() - 1) << outcome.error;
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(RunCommand, JsonOnStandardOutputIsAlone) {
  const Outcome outcome = run({"--format", "json", "--report", "-"}, {kFixture, "write", "3"});
  EXPECT_EQ(exit_code(outcome.status), 3);
  EXPECT_TRUE(nlohmann::json::parse(outcome.output, nullptr, false).is_object()) << outcome.output;
  // The program writes the two lines to different streams, so their order is not fixed.
  for (const char* line : {"line one\n", "line two\n"})
    EXPECT_NE(outcome.error.find(line), std::string::npos) << outcome.error;
  EXPECT_TRUE(outcome.error.ends_with("\nforksight: nothing found in 1 process\n")) << outcome.error;
  EXPECT_FALSE(fs::exists(folder_ / "-")) << "a file with the name - was written";
}

TEST_F(RunCommand, JsonOfAHangIsOneDocument) {
  const Outcome outcome =
      run({"--format", "json", "--report", "-", "--on-hang", "kill", "--hang-after", "0.2"}, {kHazard, "hang"});
  const auto report = nlohmann::json::parse(outcome.output, nullptr, false);
  ASSERT_TRUE(report.is_object()) << outcome.output;
  EXPECT_EQ(report.at("findings").at(0).at("rule"), kSlug);
  const Outcome quiet = run({"-q", "--format", "json", "--report", "-"}, {"true"});
  EXPECT_TRUE(nlohmann::json::parse(quiet.output, nullptr, false).is_object()) << quiet.output;
  EXPECT_EQ(quiet.error, "");
}

// As with `>>` in a shell, the file keeps its old contents.
TEST_F(RunCommand, AReportOnStandardOutputIsAppended) {
  std::ofstream(folder_ / "all.txt") << "before\n";
  const Outcome outcome =
      execute({"sh", "-c", "exec \"$0\" run --report - --on-hang kill --hang-after 0.2 -- \"$1\" hang >>all.txt",
               FORKSIGHT_COMMAND, kHazard});
  const std::string all = read_whole(folder_ / "all.txt");
  EXPECT_TRUE(all.starts_with("before\n")) << all;
  EXPECT_NE(all.find(kSlug), std::string::npos) << all;
  EXPECT_EQ(outcome.error.find(kSlug), std::string::npos) << outcome.error;
}

TEST_F(RunCommand, AReportOnStandardOutputSaysThatNothingWasFound) {
  const Outcome outcome =
      execute({"sh", "-c", "exec \"$0\" run --report - -- true >report.txt", FORKSIGHT_COMMAND});
  EXPECT_EQ(exit_code(outcome.status), 0) << outcome.error;
  EXPECT_TRUE(read_whole(folder_ / "report.txt").starts_with("forksight: nothing found in 1 process"));
}

TEST_F(RunCommand, QuietPrintsFindingsOnly) {
  EXPECT_EQ(run({"-q"}, {kFixture, "write"}).error, "line two\n");
  const std::string error = run({"-q"}, {kHazard, "failed"}).error;
  EXPECT_NE(error.find(kSlug), std::string::npos);
  EXPECT_EQ(error.find("traces in"), std::string::npos) << error;
}

TEST_F(RunCommand, OnlyTheOwnerMayReadTheFolder) {
  run({"-q"}, {kHazard, "failed"});
  ASSERT_EQ(run_folders().size(), 1U);
  for (const fs::path& folder : {out(), run_folders().front()}) {
    struct stat status {};
    ASSERT_EQ(::stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700U) << folder;
  }
}

TEST_F(RunCommand, OldRunsAreRemovedAboveTheBoundOfKeep) {
  for (int i = 0; i < 3; ++i) run({"-q"}, {kHazard, "failed"});
  ASSERT_EQ(run_folders().size(), 3U) << "by default, the latest twenty runs are kept";
  std::ofstream(run_folders().front() / "notes") << "mine\n";
  const Outcome last = run({"--keep", "1"}, {kHazard, "failed"});
  EXPECT_EQ(run_folders().size(), 2U) << "the folder of the last run, and the folder that contains a foreign file";
  EXPECT_NE(last.error.find("removed 2 older runs from forksight-out; --keep all keeps them\n"), std::string::npos)
      << last.error;
  EXPECT_NE(last_line(last.error).find("traces in forksight-out/"), std::string::npos) << last.error;
}

TEST_F(RunCommand, ReportShowsLaterWhatRunFound) {
  run({"-q", "--on-hang", "kill", "--hang-after", "0.2"}, {kHazard, "hang"});
  const Outcome later = execute({FORKSIGHT_COMMAND, "report", "forksight-out"});
  EXPECT_EQ(exit_code(later.status), 1);
  EXPECT_NE(later.output.find("CERTAIN HANG: orphaned-mutex"), std::string::npos) << later.output;
}

}  // namespace
}  // namespace forksight
