// `forksight suite run`
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/output.hpp"
#include "command/suite_command.hpp"
#include "command/suite_progress.hpp"
#include "files/error_output.hpp"
#include "files/replace_file.hpp"
#include "proc/proc_fs.hpp"
#include "suite/runner.hpp"
#include "suite/views.hpp"

namespace forksight {
namespace {

constexpr char kSuiteRunExamples[] = R"(Examples:
  forksight suite run                            all cases, three for every two processors at a time
  forksight suite run 'orphaned_*' -j 4          some of them
  forksight suite run --slug lost-openmp-pool    those that must show one hazard
  forksight suite run --format junit --report suite.xml
  forksight suite run lock_cycle --keep kept     and keep traces, reports and outputs

)";

constexpr char kSuiteRunFooter[] = R"(
Each case is judged in parts. bare: it runs by itself; why and core: `forksight why` and `forksight core` explain it
while it hangs; observed: it runs under `forksight run`; runs: it runs with each set of options that its source names,
cures included. What is seen must be what the source of the case says. A case that needs something that this machine
lacks is skipped, with the reason. A skipped case is neither ok nor red, unless --strict is given.

Exit status: 0 all cases as expected, 1 some are not, 2 invalid command line, 3 the suite could not be read.)";

struct SuiteRunLine {
  SuiteChoice choice;
  std::vector<std::string> parts;
  std::string format = "table";
  std::string report;
  std::string keep;
  int jobs = 0;
  int limit_s = 150;
  bool is_strict = false;
  bool is_quiet = false;
};

// Cases sleep most of the time, because a hang is watched for a second or two. Three cases at a time for every two
// processors use only about an eighth of the processor time.
int default_jobs() { return suite::count_cores() * 3 / 2; }

std::string render(const suite::RunView& view, const std::string& format) {
  if (format == "json") return suite::run_as_json(view);
  if (format == "junit") return suite::run_as_junit(view);
  if (format == "tap") return suite::run_as_tap(view);
  if (format == "markdown") return suite::run_as_markdown(view);
  return suite::run_as_table(view);
}

bool write_report(const std::string& path, const std::string& text) {
  const std::string why = files::write_output(path, text);
  if (!why.empty()) say_error(fmt::format("{}: cannot be written: {}", path, why));
  return why.empty();
}

int run(const SuiteRunLine& line) {
  int status = as_int(ExitStatus::kNothingFound);
  ChosenSuite chosen;
  if (!choose_suite(line.choice, false, chosen, status)) return status;
  suite::RunnerOptions options;
  options.judge.forksight = proc::read_link("/proc/self/exe").value_or("");
  options.judge.parts = {line.parts.begin(), line.parts.end()};
  options.keep = line.keep;
  options.jobs = line.jobs > 0 ? line.jobs : default_jobs();
  options.case_limit = std::chrono::seconds(line.limit_s);

  SuiteProgress progress(line.is_quiet, line.is_strict);
  const suite::RunnerEvents events = {
      [&](const suite::CaseResult& result, const suite::Snapshot& snapshot) { progress.finished(result, snapshot); },
      [&](const suite::Snapshot& snapshot) { progress.tick(snapshot); }};
  auto done = suite::run_cases(chosen.entries, options, events);
  progress.clear();
  if (!done) {
    say_error(done.error());
    return as_int(ExitStatus::kUnreadable);
  }
  suite::RunView view;
  view.results = std::move(done->results);
  view.seconds = done->seconds;
  view.is_strict = line.is_strict;
  view.is_stopped = done->is_stopped;
  view.only_bad = line.is_quiet;
  view.suite = chosen.suite.folder.string();

  const std::string text = render(view, line.format);
  const bool is_written = line.report.empty() ? write_out(text) : write_report(line.report, text);
  if (!line.report.empty())
    files::write_error(fmt::format("forksight: {}; the report is {}\n", suite::describe_totals(view), line.report));
  if (!is_written) return as_int(ExitStatus::kUnreadable);
  const suite::Totals totals = suite::count(view.results);
  const bool is_good = totals.red == 0 && totals.unknown == 0 && (!line.is_strict || totals.skipped == 0);
  return as_int(is_good ? ExitStatus::kNothingFound : ExitStatus::kFindings);
}

}  // namespace

void add_suite_run(CLI::App& verb, int& status) {
  auto line = std::make_shared<SuiteRunLine>();
  CLI::App* const run_verb = verb.add_subcommand("run", "Run cases, and compare the findings with the expected ones");
  run_verb->formatter(std::make_shared<ExampleFormatter>("forksight suite run [OPTIONS] [CASE...]", kSuiteRunExamples));
  run_verb->footer(kSuiteRunFooter);
  add_suite_choice(*run_verb, line->choice);
  run_verb
      ->add_option("-j,--jobs", line->jobs, "Number of cases to run at a time; default: three for every two processors")
      ->type_name("N")
      ->check(CLI::Range(1, 4096))
      ->group("How");
  run_verb->add_option("--only", line->parts, "Judge only this part of each case: bare, why, core, observed, runs")
      ->type_name("PART")
      ->check(CLI::IsMember({"bare", "why", "core", "observed", "runs"}))
      ->allow_extra_args(false)
      ->group("How");
  run_verb->add_option("--limit", line->limit_s, "Time limit for each case, in seconds; default: 150")
      ->type_name("S")
      ->check(CLI::Range(1, 86400))
      ->group("How");
  run_verb->add_flag("--strict", line->is_strict, "Count a skipped case as red")->group("How");
  run_verb->add_option("--format", line->format, "table, json (docs/suite.schema.json), junit, tap or markdown")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "json", "junit", "tap", "markdown"}))
      ->group("Output");
  run_verb->add_option("--report", line->report, "Write the report to FILE")->type_name("FILE")->group("Output");
  run_verb->add_option("--keep", line->keep, "Keep traces, reports and outputs in DIR, a folder a case")
      ->type_name("DIR")
      ->group("Output");
  run_verb->add_flag("-q,--quiet", line->is_quiet, "Print only the cases that are not ok")->group("Output");
  run_verb->callback([line, &status] { status = run(*line); });
}

}  // namespace forksight
