#include "suite/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "render/names.hpp"

namespace forksight::suite {
namespace {

using Lines = std::vector<std::string>;

std::string base(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// Returns the plain name of a function: "worker_main" for worker_main(void*), "sum" for sum._omp_fn.0, "push" for
// push.isra.0.
std::string plain(const std::string& function) {
  const std::string name = function.substr(0, std::min(function.find('('), function.size()));
  const std::string first = name.substr(0, std::min(name.find('.'), name.size()));
  const std::size_t start = first.find_first_not_of(' ');
  return start == std::string::npos ? "" : first.substr(start, first.find_last_not_of(' ') - start + 1);
}

std::string or_nothing(const std::optional<std::string>& text) { return text ? *text : "nothing"; }

std::string describe(const Finding& finding) {
  return fmt::format("{} {} {}: {} | {}", finding.rule, certainty_of(finding), render::name_of(finding.outcome),
                     finding.culprit.name, finding.summary);
}

std::optional<std::string> actual_field(const Finding& finding, std::string_view key) {
  const Culprit& culprit = finding.culprit;
  if (key == "culprit") return culprit.name;
  if (key == "lock") {
    if (culprit.kind != CulpritKind::kLock) return std::nullopt;
    return culprit.name.substr(0, std::min(culprit.name.find(" ("), culprit.name.size()));
  }
  if (key == "holder") return culprit.holder ? std::optional(culprit.holder->name) : std::nullopt;
  if (key == "start") return culprit.holder ? plain(culprit.holder->start_routine) : "";
  if (key == "library") return base(culprit.library);
  if (key == "victims") return std::to_string(finding.victims.size() + finding.more_victims);
  if (key == "merged") return std::to_string(finding.count);
  return std::nullopt;
}

const model::Stack& actual_stack(const Finding& finding, const std::string& name) {
  static const model::Stack kNone;
  if (name == "stack") return finding.stack;
  if (name == "culprit") return finding.culprit.stack;
  return name == "fork" && finding.fork ? finding.fork->stack : kNone;
}

bool is_same(const model::Frame& got, const ExpectedFrame& want) {
  return plain(got.function) == want.function && base(got.file) == want.file && got.line == want.line;
}

// Compares a stack with the expected frames. Only frames in the source files of the expected frames count. The
// innermost of these frames must be the expected frames, without gaps.
Lines compare_stack(const Finding& finding, const std::string& name, const std::vector<ExpectedFrame>& expected) {
  const model::Stack& stack = actual_stack(finding, name);
  std::set<std::string> files;
  for (const ExpectedFrame& frame : expected) files.insert(frame.file);
  std::vector<const model::Frame*> seen;
  for (const model::Frame& frame : stack.frames) {
    if (files.contains(base(frame.file))) seen.push_back(&frame);
  }
  bool same = seen.size() >= expected.size();
  for (std::size_t index = 0; same && index < expected.size(); ++index) same = is_same(*seen[index], expected[index]);
  if (same) return {};
  Lines lines = {fmt::format("    {}: expected, innermost first:", name)};
  for (const ExpectedFrame& frame : expected) {
    lines.push_back(fmt::format("      {} ({}:{})", frame.function, frame.file, frame.line));
  }
  lines.push_back("    the report has:");
  if (!stack.known()) lines.push_back("      (no stack)");
  for (const model::Frame& frame : stack.frames) {
    lines.push_back(fmt::format("      {} ({}:{}){} in {}", frame.function, base(frame.file), frame.line,
                                frame.approximate ? " approximate" : "", base(frame.module)));
  }
  return lines;
}

Lines compare_finding(const Finding& finding, const ExpectedFinding& expected) {
  Lines lines;
  const auto compare = [&](std::string_view key, const std::string& want, const std::optional<std::string>& got) {
    if (got != want) lines.push_back(fmt::format("    {}: expected {}, the report has {}", key, want, or_nothing(got)));
  };
  compare("certainty", expected.certainty, certainty_of(finding));
  compare("outcome", expected.outcome, render::name_of(finding.outcome));
  for (const auto& [key, value] : expected.fields) {
    const auto got = actual_field(finding, key);
    // If a case expects the soname of the library, the report may instead have the name of the library's file, which
    // the kernel shows.
    if (key == "library" && got == file_of_library(value)) continue;
    compare(key, value, got);
  }
  for (const auto& [name, frames] : expected.stacks) {
    const Lines differences = compare_stack(finding, name, frames);
    lines.insert(lines.end(), differences.begin(), differences.end());
  }
  if (!lines.empty()) {
    lines.insert(lines.begin(), fmt::format("  {}: {}", expected.rule, finding.summary));
  }
  return lines;
}

bool has_field(const ExpectedFinding& expected, std::string_view key) {
  return std::ranges::any_of(expected.fields, [&](const auto& field) { return field.first == key; });
}

}  // namespace

std::string certainty_of(const Finding& finding) {
  const std::string harm = render::name_of(finding.harm);
  const std::string cause = render::name_of(finding.cause);
  return harm == cause ? harm : harm + "/" + cause;
}

Lines compare_findings(const std::vector<Finding>& findings, const std::vector<ExpectedFinding>& expected) {
  std::vector<const Finding*> left;
  for (const Finding& finding : findings) left.push_back(&finding);
  Lines lines;
  for (const ExpectedFinding& want : expected) {
    auto best = left.end();
    Lines differences;
    for (auto one = left.begin(); one != left.end(); ++one) {
      if ((*one)->rule != want.rule) continue;
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
    if (!has_field(want, "merged") && (*best)->count != 1) {
      lines.push_back(fmt::format("  {}: merged {} times, expected once", want.rule, (*best)->count));
    }
    left.erase(best);
  }
  for (const Finding* finding : left) lines.push_back("  not expected: " + describe(*finding));
  return lines;
}

Lines compare_ended(const std::vector<Finding>& findings, const std::vector<ExpectedFinding>& expected,
                    const ExpectedRun& run) {
  std::vector<std::string> got;
  std::string told;
  for (const Finding& finding : findings) {
    got.push_back(finding.rule + " " + render::name_of(finding.outcome));
    for (const std::string& sentence : finding.chain) told += sentence + " ";
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
    for (const Finding& finding : findings) lines.push_back("  the report has: " + describe(finding));
  }
  for (const std::string& part : run.says) {
    if (told.find(part) == std::string::npos) lines.push_back("  no finding says: " + part);
  }
  return lines;
}

}  // namespace forksight::suite
