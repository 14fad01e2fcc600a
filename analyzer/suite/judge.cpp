#include "suite/judge.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "render/findings_json.hpp"
#include "render/json.hpp"
#include "suite/agree.hpp"
#include "suite/compare.hpp"
#include "suite/needs.hpp"
#include "suite/processes.hpp"
#include "suite/program.hpp"
#include "suite/shell_words.hpp"

namespace forksight::suite {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;
using Command = std::vector<std::string>;

void append(Lines& lines, const Lines& more) { lines.insert(lines.end(), more.begin(), more.end()); }

void append_text(Lines& lines, const std::string& text) {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back("  | " + line);
}

std::string status_text(const std::optional<int>& status) { return status ? std::to_string(*status) : "none yet"; }

class Judge {
 public:
  Judge(const Command& command, const Expectations& expected, const JudgeOptions& options)
      : command_(command), expected_(expected), options_(options) {}

  std::vector<Part> judge_all() {
    if (wants("bare") || wants("why") || wants("core")) judge_bare();
    if (wants("observed")) judge_observed();
    if (wants("runs")) {
      for (std::size_t index = 0; index < expected_.runs.size(); ++index) judge_run(expected_.runs[index], index);
    }
    return std::move(parts_);
  }

 private:
  bool wants(const std::string& part) const {
    return !is_stopped() && (options_.parts.empty() || options_.parts.contains(part));
  }

  fs::path make_folder(const std::string& name) const {
    const fs::path folder = options_.folder / name;
    fs::create_directories(folder);
    return folder;
  }

  // Adds the result of one part. The part began at `start`.
  void add(std::string name, const Command& command, Lines lines, Clock::time_point start, State state) {
    const std::chrono::duration<double> taken = Clock::now() - start;
    parts_.push_back({std::move(name), state, join_words(command), std::move(lines), taken.count()});
  }
  void add(std::string name, const Command& command, Lines lines, Clock::time_point start) {
    State state = lines.empty() ? State::kGreen : State::kRed;
    if (is_stopped()) state = State::kUnknown;
    add(std::move(name), command, std::move(lines), start, state);
  }

  void judge_bare() {
    const fs::path folder = make_folder("bare");
    const Clock::time_point start = Clock::now();
    Program program(command_, folder, "program");
    const std::string seen = program.watch(options_.bare_limit);
    Lines lines;
    if (seen != expected_.bare) {
      lines.push_back(
          fmt::format("  expected {}, seen {} (status {})", expected_.bare, seen, status_text(program.status())));
      if (!program.status()) append(lines, describe_stacks(folder));
      append_text(lines, program.read_stdout());
      append_text(lines, program.read_stderr());
    }
    const bool hangs = lines.empty() && (seen == "hang" || seen == "spin");
    add("bare", command_, std::move(lines), start);
    if (hangs && wants("why")) judge_why(program, folder);
    if (hangs && wants("core") && expected_.core) judge_core(program, folder);
    program.end_all();
  }

  // Judges what `why` reports about the hung program, which nobody has watched until now.
  void judge_why(const Program& program, const fs::path& folder) {
    const Clock::time_point start = Clock::now();
    const Command command = {options_.forksight.string(), "why", std::to_string(program.pid()), "--format", "json"};
    if (const std::string refused = find_trace_refusal(); !refused.empty()) {
      return add("why", command, {refused}, start, State::kSkipped);
    }
    const Captured said = capture(command, folder, "why", options_.bare_limit);
    if (auto report = render::read_findings(render::kReportSchema, said.out)) why_ = std::move(report->findings);
    add("why", command, compare_said(said, expected_.why), start);
  }

  // Judges what `core` reports about a core of the process that hangs. The descendant with the highest pid counts as
  // the process that hangs. If there is no descendant, the program itself counts.
  void judge_core(const Program& program, const fs::path& folder) {
    const Clock::time_point start = Clock::now();
    std::vector<pid_t> alive = find_alive();
    const auto subject =
        std::ranges::max_element(alive, {}, [&](pid_t pid) { return std::pair(pid != program.pid(), pid); });
    const std::string pid = std::to_string(subject == alive.end() ? program.pid() : *subject);
    const Command command = {options_.forksight.string(), "core", folder / ("core." + pid), "--format", "json"};
    std::string refused = find_in_path("gcore").empty() ? "there is no gcore, which comes with gdb" : "";
    if (refused.empty()) refused = find_trace_refusal();
    if (!refused.empty()) return add("core", command, {refused}, start, State::kSkipped);
    const Captured made = capture({"gcore", "-o", folder / "core", pid}, folder, "gcore", options_.bare_limit);
    const Captured said = capture(command, folder, "core-report", options_.bare_limit);
    Lines lines = compare_said(said, *expected_.core);
    if (const auto report = render::read_findings(render::kReportSchema, said.out))
      append(lines, compare_causes(report->findings, why_));
    if (!fs::exists(command[2])) append_text(lines, made.err);
    add("core", command, std::move(lines), start);
  }

  static Lines no_report(const std::string& why, const std::optional<int>& status) {
    return {fmt::format("  no report (exit status {}): {}", status_text(status), why)};
  }

  static Lines compare_said(const Captured& said, const std::vector<ExpectedFinding>& expected) {
    const auto report = render::read_findings(render::kReportSchema, said.out);
    Lines lines = report ? compare_findings(report->findings, expected) : no_report(report.error(), said.status);
    if (!lines.empty()) append_text(lines, said.err);
    return lines;
  }

  struct Run {
    Command command;
    std::vector<Finding> findings;
    std::optional<int> status;
    std::string out;
    Lines lines;  // the reason why there is no report
  };

  // True if the program hangs but a run must report nothing about it. Such a run does not end by itself, so the suite
  // must end it.
  bool must_be_ended() const { return expected_.bare == "hang" && expected_.findings.empty(); }

  Run run_forksight(const Command& options, const std::string& name, bool must_end = false) {
    const fs::path folder = make_folder(name);
    const fs::path report = folder / "report.json";
    Run run;
    run.command = {options_.forksight.string(), "run"};
    append(run.command, options);
    append(run.command, {"--out", folder / "out", "--format", "json", "--report", report, "--"});
    append(run.command, command_);
    Program program(run.command, folder, "program");
    if (must_end) {
      run.status = program.wait(options_.silent_for);
      if (run.status) run.lines = {fmt::format("  ended with status {}, but should go on", *run.status)};
      program.terminate();
    }
    run.status = program.wait(options_.run_limit);
    if (!run.status) {
      const double limit = std::chrono::duration<double>(options_.run_limit).count();
      run.lines = {fmt::format("  did not end within {:.1f} s; its processes:", limit)};
      append(run.lines, describe_stacks(folder));
    }
    const bool left = program.end_all();
    if (left && !must_end && run.lines.empty()) run.lines = {"  forksight ended and left processes of the case behind"};
    run.out = program.read_stdout();
    error_text_ = program.read_stderr();
    if (!run.lines.empty()) return run;
    std::ifstream stream(report);
    auto told = render::read_findings(render::kReportSchema, std::string(std::istreambuf_iterator<char>(stream), {}));
    if (told) {
      run.findings = std::move(told->findings);
    } else {
      run.lines = no_report(told.error(), run.status);
    }
    return run;
  }

  void conclude(std::string name, const Run& run, Lines lines, Clock::time_point start) {
    if (!lines.empty()) {
      append_text(lines, run.out);
      append_text(lines, error_text_);
    }
    add(std::move(name), run.command, std::move(lines), start);
  }

  void judge_observed() {
    const Clock::time_point start = Clock::now();
    Command flags = {"--omp=observe"};
    append(flags, expected_.options);
    append(flags, {"--on-hang", "kill", "--kill-on", "likely"});
    const Run run = run_forksight(flags, "observed", must_be_ended());
    Lines lines = run.lines;
    if (lines.empty()) {
      lines = compare_findings(run.findings, expected_.findings);
      if (!must_be_ended()) append(lines, compare_views(run.findings, why_));
      if (expected_.bare == "ok" && run.status != 0) {
        lines.push_back(fmt::format("  exit status: expected 0, got {}", status_text(run.status)));
      }
    }
    conclude("observed", run, std::move(lines), start);
  }

  void judge_run(const ExpectedRun& asked, std::size_t number) {
    const Clock::time_point start = Clock::now();
    Command flags = asked.options;
    append(flags, expected_.options);
    append(flags, {"--on-hang", "kill", "--kill-on", "likely"});
    const Run run = run_forksight(flags, fmt::format("run-{}", number + 1));
    Lines lines = run.lines;
    if (lines.empty()) {
      lines = compare_ended(run.findings, expected_.findings, asked);
      if (run.status != asked.status) {
        lines.push_back(fmt::format("  exit status: expected {}, got {}", asked.status, status_text(run.status)));
      }
      Lines printed;
      std::istringstream text(run.out);
      for (std::string line; std::getline(text, line);) printed.push_back(line);
      for (const std::string& line : asked.printed) {
        if (std::ranges::find(printed, line) == printed.end()) {
          lines.push_back(fmt::format("  stdout: expected a line \"{}\"", line));
        }
      }
    }
    conclude(join_words(asked.options), run, std::move(lines), start);
  }

  const Command& command_;
  const Expectations& expected_;
  const JudgeOptions& options_;
  std::vector<Part> parts_;
  std::vector<Finding> why_;  // what `why` reported about the hung program
  std::string error_text_;    // standard error of the latest run
};

}  // namespace

std::vector<Part> judge(const Command& command, const Expectations& expected, const JudgeOptions& options) {
  return Judge(command, expected, options).judge_all();
}

State overall(const std::vector<Part>& parts) {
  const auto has = [&](State state) {
    return std::ranges::any_of(parts, [&](const Part& part) { return part.state == state; });
  };
  if (has(State::kRed)) return State::kRed;
  if (has(State::kUnknown)) return State::kUnknown;
  if (has(State::kSkipped)) return State::kSkipped;
  return parts.empty() ? State::kUnknown : State::kGreen;
}

}  // namespace forksight::suite
