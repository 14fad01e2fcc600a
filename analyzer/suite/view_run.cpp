#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "forksight/version.hpp"
#include "render/printable.hpp"
#include "suite/expectation_json.hpp"
#include "suite/rows.hpp"
#include "suite/shell_words.hpp"
#include "suite/views.hpp"

namespace forksight::suite {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string seconds_text(double seconds) { return fmt::format("{:.1f} s", seconds); }

// Describes the cases that a person must look at, with everything that is known about them.
std::string explain_bad(const RunView& run) {
  std::string text;
  for (const CaseResult& result : run.results) {
    if (!is_bad(result, run.is_strict)) continue;
    text += fmt::format("\n{}: {}\n", result.which->name, to_string(result.state));
    for (const std::string& line : explain(result)) text += line + "\n";
    text += "to repeat: " + repeat_command(result) + "\n";
  }
  return text;
}

}  // namespace

bool is_bad(const CaseResult& result, bool is_strict) {
  return result.state == State::kRed || (is_strict && result.state == State::kSkipped);
}

std::string describe_totals(const RunView& run) {
  const Totals totals = count(run.results);
  std::string text = fmt::format("{} case{}: {} ok", totals.count(), totals.count() == 1 ? "" : "s", totals.green);
  if (totals.red != 0) text += fmt::format(", {} red", totals.red);
  if (totals.skipped != 0) {
    text += fmt::format(", {} skipped{}", totals.skipped, run.is_strict ? ", which is red here" : " and not judged");
  }
  if (totals.unknown != 0) text += fmt::format(", {} not run to the end", totals.unknown);
  return text + ", in " + seconds_text(run.seconds);
}

std::vector<std::string> explain(const CaseResult& result) {
  std::vector<std::string> lines;
  for (const std::string& line : result.lines) lines.push_back("  " + render::printable(line));
  if (!result.package.empty()) lines.push_back("  Debian's package: " + result.package);
  for (const Part& part : result.parts) {
    if (part.state == State::kGreen) continue;
    const char* const what = part.state == State::kSkipped ? "not judged" : "as seen by";
    lines.push_back(fmt::format("{}: {} `{}`:", render::printable(part.name), what, render::printable(part.command)));
    for (const std::string& line : part.lines) lines.push_back(render::printable(line));
  }
  return lines;
}

std::string first_line(const CaseResult& result) {
  if (!result.lines.empty()) return render::printable(result.lines.front());
  for (const Part& part : result.parts) {
    if (part.state == State::kGreen || part.state != result.state) continue;
    std::string line = part.lines.empty() ? "" : part.lines.front();
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    return render::printable(fmt::format("{}: {}", part.name, line));
  }
  return "";
}

std::string repeat_command(const CaseResult& result) {
  const std::vector<std::string> words = {"forksight", "suite", "run", result.which->name};
  return join_words(words);
}

std::string run_as_table(const RunView& run) {
  std::vector<Row> rows = {{"CASE", "RESULT", "TIME", "HAZARD", ""}};
  for (const CaseResult& result : run.results) {
    if (run.only_bad && result.state == State::kGreen) continue;
    const std::string rules = fmt::format("{}", fmt::join(list_rules(result.expected), ", "));
    rows.push_back({result.which->name, to_string(result.state), seconds_text(result.seconds),
                    rules.empty() ? "(none)" : rules, first_line(result)});
  }
  const std::string table = rows.size() > 1 ? align(rows) : "";
  return table + explain_bad(run) + (rows.size() > 1 ? "\n" : "") + describe_totals(run) + "\n";
}

std::string run_as_json(const RunView& run) {
  const Totals totals = count(run.results);
  Json cases = Json::array();
  for (const CaseResult& result : run.results) {
    Json parts = Json::array();
    for (const Part& part : result.parts) {
      parts.push_back({{"name", part.name},
                       {"state", to_string(part.state)},
                       {"seconds", part.seconds},
                       {"command", part.command},
                       {"lines", part.lines}});
    }
    Json one = to_json(*result.which);
    one["control"] = is_control(result.expected);
    one["expected"] = to_json(result.expected);
    one["state"] = to_string(result.state);
    one["seconds"] = result.seconds;
    one["lines"] = result.lines;
    one["package"] = result.package;
    one["repeat"] = repeat_command(result);
    one["parts"] = std::move(parts);
    cases.push_back(std::move(one));
  }
  const Json json = {
      {"schema", "forksight-suite-run/1"},
      {"tool", {{"name", "forksight"}, {"version", FORKSIGHT_VERSION}}},
      {"suite", run.suite},
      {"strict", run.is_strict},
      {"stopped", run.is_stopped},
      {"seconds", run.seconds},
      {"totals", {{"ok", totals.green}, {"red", totals.red}, {"skipped", totals.skipped}, {"unknown", totals.unknown}}},
      {"cases", cases}};
  return render::escape_json_controls(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::string run_as_markdown(const RunView& run) {
  std::vector<Row> rows = {{"case", "result", "time", "hazard", "what"}};
  for (const CaseResult& result : run.results) {
    if (run.only_bad && result.state == State::kGreen) continue;
    const std::string rules = fmt::format("{}", fmt::join(list_rules(result.expected), ", "));
    rows.push_back({fmt::format("`{}`", result.which->name), to_string(result.state), seconds_text(result.seconds),
                    rules, first_line(result)});
  }
  const std::string bad = explain_bad(run);
  return as_markdown_table(rows) + (bad.empty() ? "" : "\n```\n" + bad.substr(1) + "```\n") + "\n" +
         describe_totals(run) + "\n";
}

}  // namespace forksight::suite
