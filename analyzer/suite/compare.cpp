#include "suite/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

namespace forksight::suite {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

// A member of an object; null for what is none, or has none.
const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::optional<std::string> text_of(const Json& value) {
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

std::string text_or_empty(const Json& value) { return text_of(value).value_or(""); }

std::string base(const Json& path) { return std::filesystem::path(text_or_empty(path)).filename().string(); }

std::size_t size_of(const Json& list) { return list.is_array() ? list.size() : 0; }

long count_of(const Json& finding) {
  const Json& count = member(finding, "count");
  return count.is_number_integer() ? count.get<long>() : 1;
}

// worker_main(void*) -> worker_main; sum._omp_fn.0 and push.isra.0 -> sum, push.
std::string plain(const std::string& function) {
  const std::string name = function.substr(0, std::min(function.find('('), function.size()));
  const std::string first = name.substr(0, std::min(name.find('.'), name.size()));
  const std::size_t start = first.find_first_not_of(' ');
  return start == std::string::npos ? "" : first.substr(start, first.find_last_not_of(' ') - start + 1);
}

std::string or_nothing(const std::optional<std::string>& text) { return text ? *text : "nothing"; }

std::string describe(const Json& finding) {
  return fmt::format("{} {} {}: {} | {}", or_nothing(text_of(member(finding, "rule"))),
                     certainty_of(finding), or_nothing(text_of(member(finding, "outcome"))),
                     or_nothing(text_of(member(member(finding, "culprit"), "name"))),
                     or_nothing(text_of(member(finding, "summary"))));
}

std::optional<std::string> actual_field(const Json& finding, std::string_view key) {
  const Json& culprit = member(finding, "culprit");
  const Json& holder = member(culprit, "holder");
  if (key == "culprit") return text_of(member(culprit, "name"));
  if (key == "lock") {
    if (text_or_empty(member(culprit, "kind")) != "lock") return std::nullopt;
    const std::string name = text_or_empty(member(culprit, "name"));
    return name.substr(0, std::min(name.find(" ("), name.size()));
  }
  if (key == "holder") return text_of(member(holder, "name"));
  if (key == "start") return plain(text_or_empty(member(holder, "start_routine")));
  if (key == "library") return base(member(culprit, "library"));
  if (key == "victims") return std::to_string(size_of(member(finding, "victims")));
  if (key == "merged") return std::to_string(count_of(finding));
  return std::nullopt;
}

const Json& actual_stack(const Json& finding, const std::string& name) {
  return name == "stack" ? member(finding, "stack") : member(member(finding, name.c_str()), "stack");
}

bool is_same(const Json& got, const ExpectedFrame& want) {
  const Json& line = member(got, "line");
  return plain(text_or_empty(member(got, "function"))) == want.function && base(member(got, "file")) == want.file &&
         line.is_number_integer() && line.get<long>() == want.line;
}

// The expected frames are the innermost ones in the case's own files, one after the other.
Lines compare_stack(const Json& finding, const std::string& name, const std::vector<ExpectedFrame>& expected) {
  const Json& stack = actual_stack(finding, name);
  std::set<std::string> files;
  for (const ExpectedFrame& frame : expected) files.insert(frame.file);
  std::vector<const Json*> seen;
  if (stack.is_array()) {
    for (const Json& frame : stack) {
      if (files.contains(base(member(frame, "file")))) seen.push_back(&frame);
    }
  }
  bool same = seen.size() >= expected.size();
  for (std::size_t index = 0; same && index < expected.size(); ++index) same = is_same(*seen[index], expected[index]);
  if (same) return {};
  Lines lines = {fmt::format("    {}: expected, innermost first:", name)};
  for (const ExpectedFrame& frame : expected) {
    lines.push_back(fmt::format("      {} ({}:{})", frame.function, frame.file, frame.line));
  }
  lines.push_back("    the report has:");
  if (size_of(stack) == 0) lines.push_back("      (no stack)");
  for (std::size_t index = 0; index < size_of(stack); ++index) {
    const Json& frame = stack[index];
    lines.push_back(fmt::format("      {} ({}:{}){} in {}", text_or_empty(member(frame, "function")),
                                base(member(frame, "file")), member(frame, "line").dump(),
                                member(frame, "approximate") == Json(true) ? " approximate" : "",
                                base(member(frame, "module"))));
  }
  return lines;
}

Lines compare_finding(const Json& finding, const ExpectedFinding& expected) {
  Lines lines;
  const auto compare = [&](std::string_view key, const std::string& want, const std::optional<std::string>& got) {
    if (got != want) lines.push_back(fmt::format("    {}: expected {}, the report has {}", key, want, or_nothing(got)));
  };
  compare("certainty", expected.certainty, certainty_of(finding));
  compare("outcome", expected.outcome, text_of(member(finding, "outcome")));
  for (const auto& [key, value] : expected.fields) compare(key, value, actual_field(finding, key));
  for (const auto& [name, frames] : expected.stacks) {
    const Lines differences = compare_stack(finding, name, frames);
    lines.insert(lines.end(), differences.begin(), differences.end());
  }
  if (!lines.empty()) {
    lines.insert(lines.begin(),
                 fmt::format("  {}: {}", expected.rule, or_nothing(text_of(member(finding, "summary")))));
  }
  return lines;
}

bool has_field(const ExpectedFinding& expected, std::string_view key) {
  return std::ranges::any_of(expected.fields, [&](const auto& field) { return field.first == key; });
}

std::vector<const Json*> list_findings(const Json& report) {
  std::vector<const Json*> list;
  const Json& findings = member(report, "findings");
  if (findings.is_array()) {
    for (const Json& finding : findings) list.push_back(&finding);
  }
  return list;
}

// A text that is no report of ours agrees with nothing.
bool is_report(const Json& report) { return member(report, "findings").is_array(); }

}  // namespace

std::string certainty_of(const Json& finding) {
  const auto hang = text_of(member(finding, "hang"));
  const std::string harm = hang ? *hang : or_nothing(text_of(member(finding, "harm")));
  const std::string cause = or_nothing(text_of(member(finding, "cause")));
  return harm == cause ? harm : harm + "/" + cause;
}

Lines compare_findings(const Json& report, const std::vector<ExpectedFinding>& expected) {
  if (!is_report(report)) return {"  no report: it has no list of findings"};
  std::vector<const Json*> left = list_findings(report);
  Lines lines;
  for (const ExpectedFinding& want : expected) {
    auto best = left.end();
    Lines differences;
    for (auto one = left.begin(); one != left.end(); ++one) {
      if (text_of(member(**one, "rule")) != want.rule) continue;
      Lines its = compare_finding(**one, want);
      if (best != left.end() && its.size() >= differences.size()) continue;
      best = one;
      differences = std::move(its);
    }
    if (best == left.end()) {
      lines.push_back(fmt::format("  expected {} {} {}: not in the report", want.rule, want.certainty, want.outcome));
      continue;
    }
    lines.insert(lines.end(), differences.begin(), differences.end());
    const long count = count_of(**best);
    if (!has_field(want, "merged") && count != 1) {
      lines.push_back(fmt::format("  {}: merged {} times, expected once", want.rule, count));
    }
    left.erase(best);
  }
  for (const Json* finding : left) lines.push_back("  not expected: " + describe(*finding));
  return lines;
}

Lines compare_ended(const Json& report, const std::vector<ExpectedFinding>& expected, const ExpectedRun& run) {
  if (!is_report(report)) return {"  no report: it has no list of findings"};
  const std::vector<const Json*> findings = list_findings(report);
  std::vector<std::string> got;
  std::string told;
  for (const Json* finding : findings) {
    got.push_back(text_or_empty(member(*finding, "rule")) + " " + text_or_empty(member(*finding, "outcome")));
    const Json& chain = member(*finding, "chain");
    for (std::size_t index = 0; index < size_of(chain); ++index) told += text_or_empty(chain[index]) + " ";
  }
  std::vector<std::string> want;
  if (!run.rule.empty()) {
    want.push_back(run.rule + " " + run.outcome);
  } else if (run.outcome != "none") {
    for (const ExpectedFinding& finding : expected) want.push_back(finding.rule + " " + run.outcome);
  }
  std::ranges::sort(got);
  std::ranges::sort(want);
  Lines lines;
  if (got != want) {
    lines.push_back("  expected: " + (want.empty() ? "nothing" : fmt::format("{}", fmt::join(want, ", "))));
    for (const Json* finding : findings) lines.push_back("  the report has: " + describe(*finding));
  }
  for (const std::string& part : run.says) {
    if (told.find(part) == std::string::npos) lines.push_back("  no finding says: " + part);
  }
  return lines;
}

}  // namespace forksight::suite
