// The texts that `forksight suite` prints. A view only formats results and decides nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "suite/select.hpp"

namespace forksight::suite {

// Lists the cases and their expectations. `columns`: the width of the terminal, if there is one. If a row of the table
// would be wider, each case gets a paragraph instead of a row.
std::string list_as_table(const std::vector<Entry>& entries, std::optional<std::size_t> columns);
std::string list_as_json(const std::vector<Entry>& entries);
// Sorts the list by hazard, as in docs/coverage.md.
std::string list_as_markdown(const std::vector<Entry>& entries);

struct RunView {
  std::vector<CaseResult> results;
  double seconds = 0;
  bool is_strict = false;   // skipped cases count as red
  bool is_stopped = false;  // a signal stopped the suite before its end
  bool only_bad = false;    // the table has only the cases that are not green
  std::string suite;        // the folder of the suite
};

std::string run_as_table(const RunView& run);
std::string run_as_json(const RunView& run);
std::string run_as_markdown(const RunView& run);
std::string run_as_junit(const RunView& run);
std::string run_as_tap(const RunView& run);

// Shared by the views.
bool is_bad(const CaseResult& result, bool is_strict);
std::string describe_totals(const RunView& run);             // "3 cases: 2 ok, 1 red, in 4.1 s"
std::vector<std::string> explain(const CaseResult& result);  // everything about a case that is not green
std::string first_line(const CaseResult& result);            // what is wrong, in one line; "" if the case is green
std::string repeat_command(const CaseResult& result);
std::vector<std::string> list_rules(const Expectations& expected);

}  // namespace forksight::suite
