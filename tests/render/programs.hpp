// Models of hangs in programs of many kinds and frameworks. docs/reports.md shows the report of each at 80 columns and
// without colour, and one of the reports also at other widths and with --full.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace forksight::test {

struct Program {
  std::string name;   // "pool-worker"
  std::string title;  // "A worker of multiprocessing.Pool waits for a lock of Python"
  model::Model model;
  std::vector<std::string> own_places;  // lines of the program itself that the report must show: "train.py:20"
  std::string remedy = {};              // words of the framework that the advice must have: "post_fork"
};

std::vector<Program> all_programs();

// Returns the report for a terminal of this width. If `columns` is 0, returns the report for an output that is not a
// terminal.
std::string render_report(const Program& program, std::size_t columns, bool colour = false, bool full = false);

// Returns the text of docs/reports.md.
std::string make_reports_page();

}  // namespace forksight::test
