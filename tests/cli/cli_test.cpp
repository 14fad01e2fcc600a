#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "cli/command_line.hpp"
#include "forksight/version.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;
using test::Finished;
using test::run_forksight;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Expects that the command printed one error line on standard error, and nothing on standard output.
void expect_error(const Finished& run, int status, const std::string& line) {
  EXPECT_EQ(run.status, status);
  EXPECT_EQ(run.err, "forksight: error: " + line + "\n");
  EXPECT_EQ(run.out, "");
}

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("forksight_cli_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "hang");
    fs::create_directories(folder_ / "silent");
    fs::create_directories(folder_ / "bad");
    fs::create_directories(folder_ / "empty");
    test::LockTrace hang({});
    hang.touch(trace::TouchKind::kLock);
    hang.trace.write(folder_ / "hang" / "a.fstrace");
    test::LockTrace({}, 2500).trace.host("node2").write(folder_ / "silent" / "b.fstrace");
    std::ofstream(folder_ / "bad" / "c.fstrace") << "no trace at all, but long enough for one";
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(Cli, TheStatusOfReportSaysWhetherItFoundSomething) {
  const Finished hang = run_forksight({"report", at("hang")});
  EXPECT_EQ(hang.status, 1);
  EXPECT_TRUE(has(hang.out, "CERTAIN HANG: orphaned-mutex")) << hang.out;
  EXPECT_EQ(hang.err, "");
  const Finished silent = run_forksight({"report", at("silent")});
  EXPECT_EQ(silent.status, 0);
  EXPECT_TRUE(has(silent.out, "forksight: nothing found in 2 processes")) << silent.out;
  EXPECT_EQ(silent.err, "");
}

TEST_F(Cli, ReportTakesManyFoldersAndFiles) {
  const Finished run = run_forksight({"report", at("silent"), at("hang/a.fstrace"), at("hang")});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(has(run.out, "1 finding in 4 processes")) << run.out;
}

TEST_F(Cli, ReportUsesReadableTracesBesideBadOnes) {
  const Finished run = run_forksight({"report", at("hang"), at("bad")});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(has(run.out, "c.fstrace: not a forksight trace")) << run.out;
}

TEST_F(Cli, ReportPrintsNoColourIntoAFile) { EXPECT_FALSE(has(run_forksight({"report", at("hang")}).out, "\x1b")); }

// tests/render/terminal_test.cpp tests which width is used on a terminal.
TEST_F(Cli, ReportIsWrappedAtTheColumnsOfTheEnvironment) {
  const char* const kept = std::getenv("COLUMNS");
  const std::string before = kept == nullptr ? "" : kept;
  ::setenv("COLUMNS", "40", 1);
  const Finished run = run_forksight({"report", at("hang")});
  if (kept != nullptr) ::setenv("COLUMNS", before.c_str(), 1);
  if (kept == nullptr) ::unsetenv("COLUMNS");
  EXPECT_EQ(run.status, 1);
  std::istringstream text(run.out);
  std::size_t lines = 0;
  for (std::string line; std::getline(text, line); ++lines) {
    const std::size_t first = line.find_first_not_of(' ');
    EXPECT_TRUE(line.size() <= 40 || line.find(' ', first) == std::string::npos) << line;
  }
  EXPECT_GT(lines, 20U);
}

TEST_F(Cli, ReportAsJson) {
  const Finished run = run_forksight({"report", "--format", "json", at("hang")});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(run.out.starts_with("{\n  \"schema\": \"forksight-report/2\"")) << run.out;
  EXPECT_TRUE(has(run.out, "\"rule\": \"orphaned-mutex\""));
}

TEST_F(Cli, UnreadableEvidenceGivesStatusThree) {
  expect_error(run_forksight({"report", at("none")}), 3,
               at("none") + ": no such file or folder; `forksight run` leaves no folder if it recorded nothing");
  expect_error(run_forksight({"report", at("empty")}), 3,
               at("empty") + ": no *.fstrace and no run.json in it; name the folder that `forksight run` wrote");
  expect_error(run_forksight({"report", at("bad")}), 3,
               at("bad") +
                   "/c.fstrace: not a forksight trace; the traces are the *.fstrace files in the folder that "
                   "`forksight run` wrote");
}

TEST_F(Cli, ATraceThatWasNotFinishedIsNoEvidence) {
  std::ofstream(folder_ / "unfinished.fstrace");
  for (const char* const format : {"text", "json"}) {
    expect_error(run_forksight({"report", at("unfinished.fstrace"), "--format", format}), 3,
                 at("unfinished.fstrace") + ": its writer had not finished creating it; nothing was recorded here");
  }
  const Finished beside = run_forksight({"report", at("unfinished.fstrace"), at("silent")});
  EXPECT_EQ(beside.status, 0);
  EXPECT_TRUE(has(beside.out, "forksight: nothing found in 2 processes")) << beside.out;
}

TEST_F(Cli, TraceDumpShowsRecords) {
  const Finished text = run_forksight({"trace", "dump", at("hang/a.fstrace")});
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(text.err, "");
  EXPECT_TRUE(text.out.starts_with("0x0 header  4096 bytes\n")) << text.out;
  EXPECT_TRUE(has(text.out, "    kind: kLock\n")) << text.out;
  const Finished lines = run_forksight({"trace", "dump", at("hang/a.fstrace"), "--format", "jsonl"});
  EXPECT_EQ(lines.status, 0);
  EXPECT_TRUE(lines.out.starts_with(R"({"offset":"0x0","record":"header",)")) << lines.out;
}

TEST_F(Cli, TheStatusOfTraceDumpSaysWhetherItCouldRead) {
  test::TraceBuilder trace;
  trace.thread(1, "one");
  trace.end_with(0x1234);
  trace.write(folder_ / "damaged.fstrace");
  const Finished damaged = run_forksight({"trace", "dump", at("damaged.fstrace")});
  EXPECT_EQ(damaged.status, 1);
  EXPECT_TRUE(has(damaged.out, "0x1060 BAD: begins with 0x0000000000001234")) << damaged.out;
  expect_error(
      run_forksight({"trace", "dump", at("bad/c.fstrace")}), 3,
      at("bad/c.fstrace") +
          ": not a forksight trace; the traces are the *.fstrace files in the folder that `forksight run` wrote");
  expect_error(run_forksight({"trace", "dump", at("bad")}), 3,
               at("bad") + ": not a regular file, so not a forksight trace");
  expect_error(run_forksight({"trace", "dump", at("none")}), 3,
               at("none") + ": cannot be opened: No such file or directory");
  expect_error(run_forksight({"trace", "dump", "--format", "json", at("hang/a.fstrace")}), 2,
               "--format: json is neither text nor jsonl; try `forksight trace dump --help`");
}

TEST_F(Cli, AFullDiskIsAnError) {
  const Finished run = run_forksight({"report", at("silent")}, "/dev/full");
  EXPECT_EQ(run.status, 3);
  EXPECT_EQ(run.err, "forksight: error: standard output: No space left on device\n");
  EXPECT_EQ(run_forksight({"explain"}, "/dev/full").status, 3);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"--version"}, {"help", "why"}, {"run", "--help"}}) {
    const Finished help = run_forksight(words, "/dev/full");
    EXPECT_EQ(help.status, 3) << words.front();
    EXPECT_EQ(help.err, "forksight: error: standard output: No space left on device\n");
  }
  EXPECT_EQ(run_forksight({"trace", "dump", at("hang/a.fstrace")}, "/dev/full").status, 3);
}

TEST_F(Cli, AReportThatCannotBeWrittenIsAFailureOfForksight) {
  const Finished run =
      run_forksight({"run", "--out", at("out"), "--format", "json", "--report", "/dev/full", "--", "true"});
  EXPECT_EQ(run.status, 125);
  EXPECT_TRUE(has(run.err, "forksight: error: /dev/full: cannot be written: No space left on device\n")) << run.err;
  EXPECT_FALSE(has(run.err, "report in")) << run.err;
}

TEST_F(Cli, ARunStartsWhereNothingCanBeWritten) {
  const Finished run = run_forksight({"run", "--", "sh", "-c", "exit 7"}, "", "/proc");
  EXPECT_EQ(run.status, 7) << run.err;
  EXPECT_TRUE(has(run.err, "forksight: no folder can be made here: traces go to /")) << run.err;
  // If the folder that TMPDIR names cannot be used, the traces go to /tmp.
  ::setenv("TMPDIR", "/proc", 1);
  const Finished other = run_forksight({"run", "--", "sh", "-c", "exit 7"}, "", "/proc");
  ::unsetenv("TMPDIR");
  EXPECT_EQ(other.status, 7) << other.err;
  EXPECT_TRUE(has(other.err, "forksight: no folder can be made here: traces go to /tmp/")) << other.err;
  expect_error(run_forksight({"run", "--out", "/proc/x", "--", "true"}), 2,
               "/proc/x: cannot be used for the traces: No such file or directory; choose another folder with --out");
}

TEST_F(Cli, UsageErrorsGiveStatusTwo) {
  expect_error(run_forksight({}), 2, "no verb was given; try `forksight --help`");
  expect_error(run_forksight({"report"}), 2, "DIR is required; try `forksight report --help`");
  expect_error(run_forksight({"--bad"}), 2, "--bad: no such option before the verb; try `forksight --help`");
  expect_error(run_forksight({"report", "--format", "xml", at("hang")}), 2,
               "--format: xml is neither text nor json; try `forksight report --help`");
  const Finished verb = run_forksight({"reprot", at("hang")});
  expect_error(
      verb, 2,
      "reprot: no such verb; did you mean report? There are run, ci, why, core, report, explain, queue, suite, trace");
  expect_error(run_forksight({"xyzzy"}), 2,
               "xyzzy: no such verb; there are run, ci, why, core, report, explain, queue, suite, trace");
  const Finished option = run_forksight({"report", "--colour", at("hang")});
  EXPECT_EQ(option.status, 2);
  EXPECT_TRUE(has(option.err, "--colour")) << option.err;
  const Finished near = run_forksight({"run", "--on-hng=kill", "--", "true"});
  EXPECT_EQ(near.status, 2);
  EXPECT_TRUE(has(near.err, "did you mean --on-hang?; try `forksight run --help`")) << near.err;
  expect_error(run_forksight({"run", "--timeout", "3", "--", "true"}), 2,
               "--timeout: no such option; try `forksight run --help`");
  expect_error(run_forksight({"why", "-x", "1"}), 2, "-x: no such option; try `forksight why --help`");
  expect_error(run_forksight({"run", "make", "-j4"}), 2,
               "the command must come after \"--\": forksight run [OPTIONS] -- CMD [ARG...]; try `forksight run --help`");
  expect_error(run_forksight({"ci", "--timeout", "5m", "pytest", "-x"}), 2,
               "the command must come after \"--\": forksight ci [OPTIONS] -- CMD [ARG...]; try `forksight ci --help`");
  const Finished near_nested = run_forksight({"suite", "run", "--strct"});
  EXPECT_EQ(near_nested.status, 2);
  EXPECT_TRUE(has(near_nested.err, "did you mean --strict?; try `forksight suite run --help`")) << near_nested.err;
  expect_error(run_forksight({"run", "--report", "", "--", "true"}), 2,
               "--report: names no file; try `forksight run --help`");
  expect_error(run_forksight({"run", "--out", "", "--", "true"}), 2,
               "--out: names no folder; try `forksight run --help`");
  expect_error(run_forksight({"queue", "inspect"}), 2, "QUEUE is required; try `forksight queue inspect --help`");
  expect_error(run_forksight({"suite"}), 2,
               "forksight suite: say what to do: list, run, check; try `forksight suite --help`");
  expect_error(run_forksight({"suite", "chekc"}), 2,
               "chekc: no such verb of `forksight suite`; did you mean check? There are list, run, check");
  expect_error(run_forksight({"queue", "bogus"}), 2,
               "bogus: no such verb of `forksight queue`; there are inspect, parked, drain, requeue, gc, bench");
  expect_error(run_forksight({"trace", "bogus", "x"}), 2, "bogus: no such verb of `forksight trace`; there is dump");
  for (const Finished& run : {verb, option}) {
    EXPECT_TRUE(run.err.starts_with("forksight: error: ")) << run.err;
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
  }
}

TEST_F(Cli, ErrorsPassNoControlCharacters) {
  const Finished run = run_forksight({"report", "\x1b[31m\n"});
  EXPECT_EQ(run.status, 3);
  EXPECT_EQ(run.err,
            "forksight: error: \\x1b[31m\\x0a: no such file or folder; `forksight run` leaves no folder if it recorded "
            "nothing\n");
}

TEST_F(Cli, HelpBeginsWithExamples) {
  for (const std::vector<std::string>& verb : {std::vector<std::string>{}, {"report"}, {"explain"}}) {
    std::vector<std::string> arguments = verb;
    arguments.emplace_back("--help");
    const Finished run = run_forksight(arguments);
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.err, "");
    const std::size_t examples = run.out.find("\nExamples:\n");
    ASSERT_NE(examples, std::string::npos) << run.out;
    EXPECT_LT(examples, run.out.find("\nUsage: forksight")) << run.out;
    EXPECT_TRUE(has(run.out, "forksight " + (verb.empty() ? "run" : verb[0]))) << run.out;
  }
}

TEST_F(Cli, HelpSaysWhatTestedMeans) {
  for (const char* const verb : {"run", "why", "core", "report"})
    EXPECT_TRUE(has(run_forksight({verb, "--help"}).out, "[tested] marks advice that the hazard suite tries")) << verb;
}

TEST_F(Cli, HelpIsAVerb) {
  EXPECT_EQ(run_forksight({"help"}).out, run_forksight({"--help"}).out);
  const Finished why = run_forksight({"help", "why"});
  EXPECT_EQ(why.status, 0);
  EXPECT_EQ(why.out, run_forksight({"why", "--help"}).out);
  EXPECT_EQ(run_forksight({"help", "suite", "run"}).out, run_forksight({"suite", "run", "--help"}).out);
  EXPECT_EQ(run_forksight({"help", "suite", "rnu"}).status, 2);
  EXPECT_EQ(run_forksight({"help", "reprot"}).status, 2);
}

TEST_F(Cli, Version) {
  for (const char* option : {"--version", "-V"}) {
    const Finished run = run_forksight({option});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.out, "forksight " FORKSIGHT_VERSION "\n");
  }
}

TEST_F(Cli, AFolderWithoutReadableFilesIsAnError) {
  std::filesystem::create_directories(folder_ / "empty");
  std::ofstream(folder_ / "empty/run.json") << "{}\n";
  expect_error(run_forksight({"report", at("empty")}), 3,
               at("empty/run.json") + ": schema \"\", this build reads \"forksight-run/1\"");
}

TEST_F(Cli, ExplainListsAndPrintsEveryPage) {
  const Finished list = run_forksight({"explain"});
  EXPECT_EQ(list.status, 0);
  std::size_t pages = 0;
  for (const auto& entry : fs::directory_iterator(FORKSIGHT_HAZARD_PAGES)) {
    const std::string slug = entry.path().stem().string();
    EXPECT_TRUE(has(list.out, "\n  " + slug + " ")) << slug;
    const Finished run = run_forksight({"explain", slug});
    EXPECT_EQ(run.status, 0);
    EXPECT_TRUE(run.out.starts_with(slug + "\n\n")) << run.out;
    ++pages;
  }
  EXPECT_GE(pages, 9U);
}

TEST_F(Cli, ExplainFindsBySymptom) {
  const Finished run = run_forksight({"explain", "--search", "GUNICORN", "timeout"});
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(run.out.starts_with("gunicorn: WORKER TIMEOUT\n\n  - Make sure:")) << run.out;
  EXPECT_FALSE(has(run.out, "](")) << "the text contains a link in Markdown";
  const Finished cuda = run_forksight({"explain", "--search", "Cannot re-initialize CUDA in forked subprocess"});
  EXPECT_TRUE(cuda.out.starts_with("Cannot re-initialize CUDA in forked subprocess\n")) << cuda.out;
  EXPECT_TRUE(has(cuda.out, "\n  cuda-used-after-fork: ")) << cuda.out;
  // Each pair has a symptom as a user would type it, and the beginning of the title that the search must print.
  constexpr std::pair<const char*, const char*> kSeen[] = {
      {"pool.join() never returns", "pool.join()"},
      {"multiprocessing pool hangs", "pool.join()"},
      {"numpy multiprocessing hang", "pool.join()"},
      {"DataLoader worker hangs", "DataLoader"},
      {"pytorch dataloader freezes", "DataLoader"},
      {"dataloader num_workers stuck", "DataLoader"},
      {"gunicorn worker timeout", "gunicorn"},
      {"RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use "
       "the "
       "'spawn' start method",
       "Cannot re-initialize CUDA"},
      {"celery", "celery"},
      {"celery task never finishes", "celery"},
      {"uwsgi", "uwsgi"},
      {"airflow task stuck", "Airflow"},
      {"puma worker hangs", "Ruby"},
      {"resque", "Ruby"},
      {"R mclapply", "R: mclapply()"},
      {"mclapply hangs", "R: mclapply()"},
      {"PHP-FPM", "PHP-FPM"},
      {"php-fpm children stuck", "PHP-FPM"},
      {"postgres backend hangs", "PostgreSQL"},
      {"CI job times out without output", "A CI job times out without output"},
      {"github actions job hangs", "A CI job times out without output"},
      {"pytest hangs", "A test run hangs"},
      {"make never ends", "make, ssh or cron never ends"},
      {"make hangs", "make, ssh or cron never ends"},
      {"futex_wait in strace", "strace shows futex("},
      {"futex_wait_queue", "strace shows futex("},
      {"python in acquire", "Python: every stack ends in acquire()"},
      {"python stuck in acquire", "Python: every stack ends in acquire()"},
      {"logging deadlock fork", "Python: every stack ends in acquire()"},
      {"hangs at exit", "It hangs at exit"},
      {"process does not exit", "It hangs at exit"},
      {"process.join hangs", "Process.join()"},
      {"subprocess wait", "subprocess.wait()"},
      {"asyncio", "asyncio: await"},
      {"future.get", "C++: future.get()"},
      {"std::mutex deadlock fork", "C or C++"},
      {"deadlock", "C or C++"},
      {"sklearn n_jobs", "joblib"},
      {"grpc fork", "gRPC"},
      {"java Runtime.exec hangs", "Java"},
      {"node child_process exec hangs", "Node.js"},
      {"perl fork", "Perl"},
      {"go cgo fork", "Go or Rust"},
      {"android zygote", "Android"},
  };
  for (const auto& [seen, title] : kSeen) {
    const Finished answer = run_forksight({"explain", "--search", seen});
    // The answer first names words that no page has, and words by which misspelt words were replaced.
    std::string_view text = answer.out;
    while (text.starts_with("No page has")) text.remove_prefix(text.find("\n\n") + 2);
    EXPECT_TRUE(text.starts_with(title)) << seen << "\n" << answer.out;
    EXPECT_TRUE(has(answer.out, "- Make sure: ")) << seen;
    EXPECT_TRUE(has(answer.out, "- Run: ")) << seen;
    EXPECT_TRUE(has(answer.out, "- Fix: ")) << seen;
  }
  expect_error(
      run_forksight({"explain", "--search", "zebra", "stuck"}), 2,
      "zebra stuck: no page has any of these words; `forksight explain` lists all pages, `forksight explain --search "
      "idle` says what to do if nothing says why a process hangs, and `forksight why PID` shows what the "
      "process waits for");
  // A user may pass all words as one argument, or each word as an argument.
  EXPECT_EQ(run_forksight({"explain", "--search", "pool.join()", "never", "returns"}).out,
            run_forksight({"explain", "--search", "pool.join() never returns"}).out);
  // The answer names a word that no page has. It also contains the pages that have the other words.
  const Finished part = run_forksight({"explain", "--search", "gunicorn", "zebra", "timeout"});
  EXPECT_EQ(part.status, 0);
  EXPECT_TRUE(
      part.out.starts_with("No page has: zebra. These pages have the other words.\n\ngunicorn: WORKER TIMEOUT\n"))
      << part.out;
  // The search replaces a word that is misspelt, and the answer says so.
  const Finished misspelt = run_forksight({"explain", "--search", "gunicron"});
  EXPECT_EQ(misspelt.status, 0);
  EXPECT_TRUE(misspelt.out.starts_with(
      "No page has \"gunicron\". These pages have \"gunicorn\".\n\ngunicorn: WORKER TIMEOUT\n"))
      << misspelt.out;
  // The search takes a word that looks like an option as an ordinary word.
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"explain", "--search", "make", "-j", "never", "ends"},
        {"explain", "--search", "-j", "make"}}) {
    const Finished make = run_forksight(line);
    EXPECT_TRUE(make.out.starts_with("make, ssh or cron never ends")) << make.out << make.err;
  }
  EXPECT_EQ(run_forksight({"explain", "--search", "--help"}).out, run_forksight({"explain", "--help"}).out);
  // If most words are unknown, or all words say only that something hangs, the answer contains no page. It lists only
  // titles.
  for (const char* const vague : {"zebra worker", "it hangs"}) {
    const Finished titles = run_forksight({"explain", "--search", vague});
    EXPECT_EQ(titles.status, 0);
    EXPECT_TRUE(has(titles.out, "What you see (forksight explain --search TITLE):\n\n  ")) << titles.out;
    EXPECT_FALSE(has(titles.out, "- Make sure: ")) << titles.out;
    EXPECT_TRUE(has(titles.out, "forksight why PID shows what")) << titles.out;
  }
  EXPECT_TRUE(has(run_forksight({"explain"}).out, "\n  gunicorn: WORKER TIMEOUT\n"));
}

TEST_F(Cli, ExplainSuggestsSimilarNames) {
  expect_error(run_forksight({"explain", "orphand-mutex"}), 2,
               "orphand-mutex: no such hazard; did you mean orphaned-mutex?");
  expect_error(run_forksight({"explain", "zzz"}), 2, "zzz: no such hazard; `forksight explain` lists them");
  // A word that is the name of no hazard may be a word of a symptom.
  expect_error(run_forksight({"explain", "gunicorn"}), 2,
               "gunicorn: no such hazard; `forksight explain --search gunicorn` finds it among the symptoms");
}

}  // namespace
}  // namespace forksight
