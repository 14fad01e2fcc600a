#include "command/run_command.hpp"

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command/formatter.hpp"
#include "command/output.hpp"
#include "command/run_cures.hpp"
#include "command/show_report.hpp"
#include "command/words_after_dashes.hpp"
#include "session/session.hpp"

namespace forksight {
namespace {

constexpr char kRunDescription[] = "Run CMD under the shim, watch its process tree, report what hangs and why";

constexpr char kRunExamples[] = R"(Examples:
  forksight run -- python train.py           run the program; a hang is reported within two seconds
  forksight run --on-hang kill -- make test  a hung test ends instead of blocking the queue
  forksight run --error-exitcode 9 --report hang.txt -- ./server
                                             for CI: exit with 9 if there is a finding, write the report to a file
  forksight run --cure none -- ./solver      cure nothing, to see what happens without cures
  forksight run --cure auto -- ./server      turn on all cures that are sound
  forksight run --lock-order --predict -- ./tests
                                             also report what may hang in another run

)";

constexpr char kRunFooter[] = R"(
Exit status: that of CMD, or 128+N if signal N killed CMD; the value of --error-exitcode if it is given and there is a
finding; 2: invalid command line; 125: forksight itself failed; 126: CMD cannot be run; 127: CMD does not exist.

Ctrl-C reaches CMD as always. If something hangs, the diagnosis is printed first, and a second Ctrl-C stops waiting for CMD
and leaves it as it is. If no hang is proven, but all processes have slept for a second or longer,
forksight prints what each waits for. Signals sent to forksight by kill(1) (INT, QUIT, TERM, HUP, USR1, USR2) are passed on to CMD.)";

struct RunLine {
  RunOptions options;
  double hang_after_seconds = 1;
  int error_exitcode = -1;
  std::string on_hang = "report";
  std::string kill_on = "proven";
  std::string keep;
  std::string format = "text";
  std::string fail_on = "likely";
  std::vector<std::string> ignored;  // CMD as CLI11 splits it; words_after_dashes() is used instead
};

const std::map<std::string, OnHang> kOnHang{{"report", OnHang::kReport}, {"kill", OnHang::kKill}};
const std::map<std::string, ReportFormat> kFormats{{"text", ReportFormat::kText}, {"json", ReportFormat::kJson}};
const std::map<std::string, Certainty> kCertainties{
    {"proven", Certainty::kProven}, {"certain", Certainty::kProven},  // reports say "CERTAIN" if this is proven
    {"likely", Certainty::kLikely}, {"possible", Certainty::kPossible}};
const std::map<std::string, Certainty> kKillOn{{"proven", Certainty::kProven}, {"likely", Certainty::kLikely}};

// The validator has no description, because the type name of the option already shows the choices.
CLI::Validator one_of(std::vector<std::string> words) { return CLI::IsMember(std::move(words)).description(""); }

// An empty name is mostly that of a variable which is not set.
CLI::Validator is_name_of(const char* what) {
  return CLI::Validator(
      [what](std::string& name) { return name.empty() ? fmt::format("names no {}", what) : std::string(); }, "");
}

std::string check_keep(const std::string& text) {
  const auto bounds = read_keep_bounds(text);
  return bounds ? "" : bounds.error();
}

void add_options(CLI::App& run, RunLine& line) {
  RunOptions& options = line.options;
  constexpr char kHang[] = "When something hangs";
  run.add_option("--hang-after", line.hang_after_seconds, "Report a process that has been stuck for this many seconds")
      ->type_name("SECONDS")->check(CLI::Range(0.1, 86400.0).description(""))->capture_default_str()->group(kHang);
  run.add_option("--on-hang", line.on_hang, "report: report the hang and go on waiting; kill: report it, then SIGKILL the whole tree if the hang is proven")
      ->check(one_of({"report", "kill"}))->type_name("report|kill")->capture_default_str()->group(kHang);
  run.add_option("--kill-on", line.kill_on, "The least certainty that --on-hang kill acts on")
      ->check(one_of({"proven", "likely"}))->type_name("proven|likely")->capture_default_str()->group(kHang);

  constexpr char kCure[] = "What the shim does at a fork";
  run.add_option("--cure", options.cure, "Cures to apply at a fork: auto: all sound cures; none: no cure, only watch; LIST: the named cures")
      ->check(CLI::Validator([](std::string& list) { return check_cures(list); }, "", "cures"))
      ->type_name("auto|none|LIST")->capture_default_str()->group(kCure);
  run.add_option("--omp", options.omp, "OpenMP pools that a fork would lose: auto takes the soundest cure, observe only records")
      ->check(one_of({"auto", "observe", "clamp", "quiesce", "rebuild"}))
      ->type_name("auto|observe|clamp|quiesce|rebuild")->capture_default_str()->group(kCure);
  run.add_option("--on-orphan", options.on_orphan, "If a child would wait for a lock that no thread can release: report it, abort the child, or recover the lock")
      ->check(one_of({"report", "abort", "recover"}))
      ->type_name("report|abort|recover")->capture_default_str()->group(kCure);

  constexpr char kForesight[] = "What may happen in another run";
  run.add_flag("--lock-order", options.lock_order, "Report locks that threads take in opposite orders; slows down each lock operation")
      ->group(kForesight);
  run.add_flag("--predict", options.predict, "Report locks that a child takes and that other threads of its parent sometimes hold, with the probability of a hang")
      ->group(kForesight);

  constexpr char kOutput[] = "What comes out, and where";
  run.add_option("--out", options.out, "Folder for the traces, one folder a run inside of it")
      ->type_name("DIR")->default_str("forksight-out")->check(is_name_of("folder"))->group(kOutput);
  run.add_option("--keep", line.keep, "How many runs, and how much disk space, to keep in the folder: 20, 200M, 20,200M; the oldest runs are deleted. "
                 "By default 20,200M in forksight-out, and all in a --out DIR")
      ->type_name("all|N|SIZE")->check(CLI::Validator([](std::string& text) { return check_keep(text); }, "", "keep"))->group(kOutput);
  run.add_option("--report", options.report, "Write the report to FILE instead of standard error; -: to standard output, and the output of CMD then goes to standard error")
      ->type_name("FILE")->check(is_name_of("file"))->group(kOutput);
  run.add_option("--format", line.format, "json: the whole report as one document, which needs --report; FILE is written again when the report grows")
      ->check(one_of({"text", "json"}))->type_name("text|json")->capture_default_str()->group(kOutput);
  run.add_flag("--full", options.full, kFullHelp)->group(kOutput);
  run.add_flag("-q,--quiet", options.quiet, "Print findings only")->group(kOutput);

  constexpr char kStatus[] = "The exit status, for scripts";
  run.add_option("--error-exitcode", line.error_exitcode, "Exit with N if there is a finding, cured hazards included")
      ->type_name("N")->check(CLI::Range(0, 255).description(""))->group(kStatus);
  run.add_option("--fail-on", line.fail_on, "The least certainty that counts for --error-exitcode; certain is another word for proven")
      ->check(one_of({"proven", "certain", "likely", "possible"}))
      ->type_name("proven|likely|possible")->capture_default_str()->group(kStatus);
}

}  // namespace

void add_run_command(CLI::App& app, int argc, const char* const* argv, int& status) {
  CLI::App* run = app.add_subcommand("run", kRunDescription);
  run->formatter(std::make_shared<ExampleFormatter>("forksight run [OPTIONS] -- CMD [ARG...]", kRunExamples));
  run->footer("\n" + describe_cures() + kTestedHelp + kRunFooter);
  const auto line = std::make_shared<RunLine>();
  run->add_option("CMD", line->ignored, "The command and its arguments, after \"--\"")->type_name(" ");
  add_options(*run, *line);
  run->callback([line, run, argc, argv, &status] {
    line->options.command = words_after_dashes(argc, argv);
    if (line->options.command.empty()) {
      throw CLI::ValidationError("no command; put it after \"--\": forksight run [OPTIONS] -- CMD [ARG...]");
    }
    complete_cures(line->options, run->count("--omp") > 0, run->count("--on-orphan") > 0);
    line->options.on_hang = kOnHang.at(line->on_hang);
    line->options.kill_on = kKillOn.at(line->kill_on);
    line->options.format = kFormats.at(line->format);
    line->options.fail_on = kCertainties.at(line->fail_on);
    if (!line->keep.empty()) line->options.keep = read_keep_bounds(line->keep).value();
    if (line->error_exitcode >= 0) line->options.error_exitcode = line->error_exitcode;
    line->options.hang_after = std::chrono::milliseconds(std::lround(line->hang_after_seconds * 1000));
    const RunEnd end = run_session(line->options);
    if (!end.error.empty()) say_error(end.error);
    status = end.status;
  });
}

}  // namespace forksight
