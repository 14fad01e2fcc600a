// Writes results in formats of other tools: JUnit's XML as Jenkins reads it, and the Test Anything Protocol.
#include <fmt/format.h>

#include <map>

#include "render/xml.hpp"
#include "suite/shell_words.hpp"
#include "suite/views.hpp"

namespace forksight::suite {
namespace {

using render::escape_xml;
using render::escape_xml_lines;

struct Counts {
  int failures = 0;
  int errors = 0;
  int skipped = 0;
  double seconds = 0;
  std::vector<const CaseResult*> cases;

  std::string attributes() const {
    return fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")", cases.size(), failures,
                       errors, skipped, seconds);
  }
  void add(const CaseResult& result, bool is_strict) {
    if (is_bad(result, is_strict)) {
      ++failures;
    } else if (result.state == State::kSkipped) {
      ++skipped;
    } else if (result.state == State::kUnknown) {
      ++errors;
    }
    seconds += result.seconds;
    cases.push_back(&result);
  }
};

std::string all_lines(const CaseResult& result) {
  std::string text;
  for (const std::string& line : explain(result)) text += line + "\n";
  return text + "to repeat: " + repeat_command(result) + "\n";
}

std::string as_testcase(const CaseResult& result, bool is_strict) {
  std::string text = fmt::format("    <testcase name=\"{}\" classname=\"forksight.suite.{}\" time=\"{:.3f}\"",
                                 escape_xml(result.which->name), escape_xml(result.which->folder), result.seconds);
  const std::string what = escape_xml(first_line(result));
  if (is_bad(result, is_strict)) {
    return text + fmt::format(">\n      <failure message=\"{}\" type=\"{}\">{}</failure>\n    </testcase>\n", what,
                              to_string(result.state), escape_xml_lines(all_lines(result)));
  }
  if (result.state == State::kSkipped) {
    return text + fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", what);
  }
  if (result.state == State::kUnknown) {
    return text + ">\n      <error message=\"stopped before its end\" type=\"unknown\"/>\n    </testcase>\n";
  }
  return text + "/>\n";
}

std::string as_yaml(const CaseResult& result) {
  std::string text = "  ---\n  message: |\n";
  for (const std::string& line : explain(result)) text += "    " + line + "\n";
  return text + "    to repeat: " + repeat_command(result) + "\n  ...\n";
}

}  // namespace

std::string run_as_junit(const RunView& run) {
  Counts all;
  std::map<std::string, Counts> folders;
  for (const CaseResult& result : run.results) {
    all.add(result, run.is_strict);
    folders[result.which->folder].add(result, run.is_strict);
  }
  all.seconds = run.seconds;
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"forksight suite\" {}>\n", all.attributes());
  for (const auto& [folder, counts] : folders) {
    text += fmt::format("  <testsuite name=\"{}\" {}>\n", escape_xml(folder), counts.attributes());
    for (const CaseResult* result : counts.cases) text += as_testcase(*result, run.is_strict);
    text += "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

std::string run_as_tap(const RunView& run) {
  std::string text = fmt::format("TAP version 14\n1..{}\n", run.results.size());
  std::size_t number = 0;
  for (const CaseResult& result : run.results) {
    ++number;
    if (result.state == State::kUnknown && run.is_stopped) continue;
    const bool is_skip = result.state == State::kSkipped && !run.is_strict;
    const bool is_ok = result.state == State::kGreen || is_skip;
    text += fmt::format("{} {} - {}", is_ok ? "ok" : "not ok", number, result.which->name);
    if (is_skip) text += " # SKIP " + first_line(result);
    text += "\n";
    if (!is_ok) text += as_yaml(result);
  }
  if (run.is_stopped) text += "Bail out! stopped before the end\n";
  return text;
}

}  // namespace forksight::suite
