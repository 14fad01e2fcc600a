#include "suite/select.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

namespace forksight::suite {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) { return std::ranges::find(names, name) != names.end(); }

bool fits(const std::string& glob, const std::string& name) { return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0; }

bool is_named(const Case& one, const Names& names) {
  return names.empty() || std::ranges::any_of(names, [&](const std::string& glob) { return fits(glob, one.name); });
}

bool shares(const Names& some, const Names& others) {
  return std::ranges::any_of(some, [&](const std::string& one) { return has(others, one); });
}

bool is_asked_for(const Case& one, const Filter& filter, bool all) {
  if (!is_named(one, filter.names)) return false;
  if (!filter.folders.empty() && !has(filter.folders, one.folder)) return false;
  if (!filter.labels.empty()) return shares(one.labels, filter.labels);
  return all || one.labels.empty() || has(filter.names, one.name);
}

bool expects(const Expectations& expected, const Names& slugs) {
  const auto any_of = [&](const std::vector<ExpectedFinding>& findings) {
    return std::ranges::any_of(findings, [&](const ExpectedFinding& finding) { return has(slugs, finding.rule); });
  };
  return any_of(expected.findings) || any_of(expected.why) || (expected.core && any_of(*expected.core));
}

std::string find_unknown(const Suite& suite, const Filter& filter) {
  const auto nothing_has = [&](auto&& holds) { return std::ranges::none_of(suite.cases, holds); };
  for (const std::string& name : filter.names) {
    if (nothing_has([&](const Case& one) { return fits(name, one.name); })) {
      return fmt::format("{}: no such case; `forksight suite list` names them", name);
    }
  }
  for (const std::string& folder : filter.folders) {
    if (nothing_has([&](const Case& one) { return one.folder == folder; })) {
      return fmt::format("{}: no case is of that library; `forksight suite list` names them", folder);
    }
  }
  for (const std::string& label : filter.labels) {
    if (nothing_has([&](const Case& one) { return has(one.labels, label); })) {
      return fmt::format("{}: no case has that label", label);
    }
  }
  return "";
}

}  // namespace

Selected select(const Suite& suite, const Filter& filter, bool all) {
  Selected selected;
  selected.error.message = find_unknown(suite, filter);
  if (!selected.error.message.empty()) return selected;
  for (const Case& one : suite.cases) {
    if (!is_asked_for(one, filter, all)) continue;
    auto expected = read_expectations(one.source, one.variant);
    if (!expected) {
      selected.error = {fmt::format("{}: {}", one.name, expected.error()), false};
      return selected;
    }
    if (!filter.outcomes.empty() && !has(filter.outcomes, expected->bare)) continue;
    if (!filter.slugs.empty() && !expects(expected.value(), filter.slugs)) continue;
    selected.entries.push_back({&one, std::move(expected).value()});
  }
  if (selected.entries.empty()) selected.error.message = "no case matches all of these options";
  return selected;
}

}  // namespace forksight::suite
