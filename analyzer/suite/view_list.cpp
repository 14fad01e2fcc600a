#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <span>
#include <string_view>

#include "forksight/version.hpp"
#include "render/page.hpp"
#include "render/printable.hpp"
#include "render/text.hpp"
#include "suite/expectation_json.hpp"
#include "suite/rows.hpp"
#include "suite/shell_words.hpp"
#include "suite/views.hpp"

namespace forksight::suite {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Returns the expected verdict about one hazard, for example "proven hang". If only another hazard is expected, names
// that hazard. Returns "nothing" if no finding is expected.
std::string describe_verdict(const std::vector<ExpectedFinding>& findings, const std::string& rule) {
  const auto same = std::ranges::find(findings, rule, &ExpectedFinding::rule);
  if (same != findings.end()) return same->certainty + " " + same->outcome;
  if (findings.empty()) return "nothing";
  return fmt::format("{} `{}`", findings.front().certainty, findings.front().rule);
}

bool hangs(const Expectations& expected) { return expected.bare == "hang" || expected.bare == "spin"; }

// Lists the runs that the case asks for. Each run is shown by its options, with `mark` before and after them. If the
// expected outcome is not "cured", the outcome follows in brackets.
std::string describe_runs(const Expectations& expected, const char* mark) {
  std::vector<std::string> runs;
  for (const ExpectedRun& run : expected.runs) {
    std::string words = mark + join_words(run.options) + mark;
    if (run.outcome == "none") {
      words += " (does not happen)";
    } else if (run.outcome != "cured") {
      words += fmt::format(" ({})", run.outcome);
    }
    runs.push_back(std::move(words));
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

std::string describe_certainties(const Expectations& expected) {
  std::vector<std::string> certainties;
  for (const ExpectedFinding& finding : findings_of(expected)) {
    if (std::ranges::find(certainties, finding.certainty) == certainties.end()) {
      certainties.push_back(finding.certainty);
    }
  }
  return fmt::format("{}", fmt::join(certainties, ", "));
}

std::string describe_place(const Case& one) {
  return one.labels.empty() ? one.folder : fmt::format("{} ({})", one.folder, fmt::join(one.labels, ", "));
}

std::ptrdiff_t count_controls(const std::vector<Entry>& entries) {
  return std::ranges::count_if(entries, [](const Entry& entry) { return is_control(entry.expected); });
}

std::string describe_count(const std::vector<Entry>& entries) {
  return fmt::format("{} cases, {} of them silent controls", entries.size(), count_controls(entries));
}

std::size_t widest_line(std::string_view text) {
  std::size_t widest = 0;
  for (const auto line : std::views::split(text, '\n'))
    widest = std::max(widest, render::width(std::string_view(line.begin(), line.end())));
  return widest;
}

// `rows`: the first row has the titles of the columns.
std::string list_in_paragraphs(const std::vector<Row>& rows, std::size_t columns) {
  render::TextOptions options;
  options.columns = columns;
  render::Page page(options);
  const Row& titles = rows.front();
  for (const Row& row : std::span(rows).subspan(1)) {
    page.paragraph(render::Style::kBold, row.front());
    std::string cells;
    for (std::size_t column = 1; column < row.size(); ++column) {
      if (row[column].empty()) continue;
      cells += fmt::format("{}{}: {}", cells.empty() ? "" : "; ", lower(titles[column]), row[column]);
    }
    page.paragraph(render::Style::kPlain, cells, 4);
  }
  return page.take();
}

}  // namespace

std::vector<std::string> list_rules(const Expectations& expected) {
  std::vector<std::string> rules;
  for (const ExpectedFinding& finding : findings_of(expected)) {
    if (std::ranges::find(rules, finding.rule) == rules.end()) rules.push_back(finding.rule);
  }
  return rules;
}

std::string list_as_table(const std::vector<Entry>& entries, std::optional<std::size_t> columns) {
  std::vector<Row> rows = {{"CASE", "HAZARD", "CERTAINTY", "BARE", "LIBRARY", "CURES"}};
  for (const Entry& entry : entries) {
    const std::string rules = fmt::format("{}", fmt::join(list_rules(entry.expected), ", "));
    rows.push_back({entry.which->name, rules.empty() ? "(none)" : rules, describe_certainties(entry.expected),
                    entry.expected.bare, describe_place(*entry.which), describe_runs(entry.expected, "")});
  }
  const std::string table = align(rows);
  const bool fits = !columns || widest_line(table) <= *columns;
  return (fits ? table : list_in_paragraphs(rows, *columns)) + "\n" + describe_count(entries) + "\n";
}

std::string list_as_json(const std::vector<Entry>& entries) {
  Json cases = Json::array();
  for (const Entry& entry : entries) {
    Json one = to_json(*entry.which);
    one["control"] = is_control(entry.expected);
    one["expected"] = to_json(entry.expected);
    cases.push_back(std::move(one));
  }
  const Json json = {{"schema", "forksight-suite-list/1"},
                     {"tool", {{"name", "forksight"}, {"version", FORKSIGHT_VERSION}}},
                     {"count", entries.size()},
                     {"controls", count_controls(entries)},
                     {"cases", cases}};
  return render::escape_json_controls(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::string list_as_markdown(const std::vector<Entry>& entries) {
  std::map<std::string, std::vector<const Entry*>> by_rule;
  std::map<std::string, std::vector<std::string>> controls;
  for (const Entry& entry : entries) {
    for (const std::string& rule : list_rules(entry.expected)) by_rule[rule].push_back(&entry);
    if (is_control(entry.expected)) controls[entry.which->folder].push_back(fmt::format("`{}`", entry.which->name));
  }
  std::vector<Row> rows = {{"hazard", "case", "bare", "`run`", "`why`", "`core`", "cures"}};
  for (const auto& [rule, cases] : by_rule) {
    std::string hazard = fmt::format("[{0}](hazards/{0}.md)", rule);
    for (const Entry* entry : cases) {
      const Expectations& expected = entry->expected;
      rows.push_back({hazard, fmt::format("`{}`", entry->which->name), expected.bare,
                      describe_verdict(expected.findings, rule),
                      hangs(expected) ? describe_verdict(expected.why, rule) : "",
                      expected.core ? describe_verdict(*expected.core, rule) : "", describe_runs(expected, "`")});
      hazard.clear();
    }
  }
  std::string text = as_markdown_table(rows);
  std::vector<Row> silent = {{"library", "programs about which nothing may be reported"}};
  for (const auto& [folder, names] : controls) silent.push_back({folder, fmt::format("{}", fmt::join(names, ", "))});
  text += "\n" + as_markdown_table(silent);
  return text + "\n" + describe_count(entries) + ".\n";
}

}  // namespace forksight::suite
