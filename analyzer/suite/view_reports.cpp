// Formats of other tools: JUnit's XML as Jenkins reads it, and the Test Anything Protocol.
#include <fmt/format.h>

#include <map>

#include "render/printable.hpp"
#include "suite/shell_words.hpp"
#include "suite/views.hpp"

namespace forksight::suite {
namespace {

// Text for XML 1.0: what it cannot hold is written as \xNN.
std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char one : render::printable(text)) {
    switch (one) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += one;
    }
  }
  return escaped;
}

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

std::string escape_lines(const std::string& text) {
  std::string escaped;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    escaped += escape_xml(std::string_view(text).substr(start, end - start)) + "\n";
    start = end + 1;
  }
  return escaped;
}

std::string as_testcase(const CaseResult& result, bool is_strict) {
  std::string text = fmt::format("    <testcase name=\"{}\" classname=\"forksight.suite.{}\" time=\"{:.3f}\"",
                                 escape_xml(result.which->name), escape_xml(result.which->folder), result.seconds);
  const std::string what = escape_xml(first_line(result));
  if (is_bad(result, is_strict)) {
    return text + fmt::format(">\n      <failure message=\"{}\" type=\"{}\">{}</failure>\n    </testcase>\n", what,
                              to_string(result.state), escape_lines(all_lines(result)));
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
