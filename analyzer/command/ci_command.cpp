#include "command/ci_command.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "command/formatter.hpp"
#include "command/output.hpp"
#include "command/show_report.hpp"
#include "command/words_after_dashes.hpp"
#include "result.hpp"
#include "session/session.hpp"

namespace forksight {
namespace {

constexpr char kCiDescription[] =
    "Run CMD as a job with a time limit, explain what hangs before the limit, then end it";

constexpr char kCiExamples[] = R"(Examples:
  forksight ci --timeout 20m -- ctest        a test that hangs is explained before the limit of the job
  forksight ci --timeout 1h --junit forksight.xml -- make check
                                             the same, with the explanation in a JUnit document
  forksight ci --timeout 90s --no-preload -- ./tests
                                             the same, without the shim in the tests

)";

constexpr char kCiFooter[] = R"(
Shortly before the limit (a quarter of it, at most 30 seconds) forksight explains what hangs, and ends the processes that
are proven to hang for ever. At the limit it ends the other processes: by SIGTERM, and after the grace by SIGKILL. If CMD ends
before the limit, forksight ends in the same way what CMD has left behind. Give a limit that is shorter than that of the CI system.

The report goes to standard error, and as report.json to the output folder. If GITHUB_STEP_SUMMARY names a file, the report
is appended to it. If GITHUB_ACTIONS is set, each finding is an annotation. Nothing is printed if there is nothing to tell.

Exit status: that of CMD, or 128+N if signal N killed CMD; 124: forksight ended CMD, or CMD ended with 0 although forksight had
to end processes that hung; 2: invalid command line; 125: forksight itself failed; 126: CMD cannot be run; 127: CMD does not
exist. Signals sent to forksight by kill(1) (INT, QUIT, TERM, HUP, USR1, USR2) are passed on to CMD; if something hangs then,
it is explained first.)";

Result<std::chrono::milliseconds> read_duration(const std::string& text) {
  constexpr long long kLongest = 7 * 24 * 3600;
  long long number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  long long unit = 0;
  if (problem == std::errc() && end - stop == 1) unit = *stop == 's' ? 1 : *stop == 'm' ? 60 : *stop == 'h' ? 3600 : 0;
  if (unit == 0 || number <= 0) {
    return Error{"\"" + text + "\" is not a duration; give a number and s, m or h, for example 90s, 20m or 1h"};
  }
  if (number > kLongest / unit) return Error{"\"" + text + "\" is longer than a week, which is 168h"};
  return std::chrono::milliseconds(std::chrono::seconds(number * unit));
}

struct CiLine {
  RunOptions options;
  std::string timeout;
  std::string grace = "5s";
  bool is_bare = false;
  std::vector<std::string> ignored;  // CMD as CLI11 splits it; words_after_dashes() is used instead
};

std::string check_duration(const std::string& text) {
  const auto duration = read_duration(text);
  return duration ? std::string() : duration.error();
}

}  // namespace

void add_ci_command(CLI::App& app, int argc, const char* const* argv, int& status) {
  CLI::App* ci = app.add_subcommand("ci", kCiDescription);
  ci->formatter(
      std::make_shared<ExampleFormatter>("forksight ci --timeout TIME [OPTIONS] -- CMD [ARG...]", kCiExamples));
  ci->footer(kCiFooter);
  const auto line = std::make_shared<CiLine>();
  ci->add_option("CMD", line->ignored, "The command and its arguments, after \"--\"")->type_name(" ");
  const CLI::Validator duration([](std::string& text) { return check_duration(text); }, "", "duration");
  ci->add_option("--timeout", line->timeout, "The limit of the job: 90s, 20m, 1h")
      ->type_name("TIME")
      ->required()
      ->check(duration);
  ci->add_option("--grace", line->grace, "How long a process may go on after SIGTERM")
      ->type_name("TIME")
      ->capture_default_str()
      ->check(duration);
  ci->add_flag("--no-preload", line->is_bare,
               "Run CMD without the shim, and examine CMD only from outside; then nothing is cured");
  ci->add_option("--junit", line->options.job.emplace().junit,
                 "Write a JUnit document with the job as its one test case")
      ->type_name("FILE");
  ci->add_option("--out", line->options.out, "Folder for the report and the traces, one folder a run inside of it")
      ->type_name("DIR")
      ->default_str("forksight-out");
  ci->add_flag("--full", line->options.full, kFullHelp);
  ci->callback([line, argc, argv, &status] {
    line->options.command = words_after_dashes(argc, argv);
    if (line->options.command.empty()) {
      throw CLI::ValidationError("no command; put it after \"--\": forksight ci --timeout TIME -- CMD [ARG...]");
    }
    line->options.quiet = true;
    line->options.preload = !line->is_bare;
    line->options.job->timeout = read_duration(line->timeout).value();
    line->options.job->grace = read_duration(line->grace).value();
    const RunEnd end = run_session(line->options);
    if (!end.error.empty()) say_error(end.error);
    status = end.status;
  });
}

}  // namespace forksight
