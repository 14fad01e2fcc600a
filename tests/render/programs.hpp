// Hangs in ten kinds of programs, as models: what docs/reports.md shows, at every width and in colour.
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
  std::vector<std::string> own_places;  // lines of the program's own that the report must have: "train.py:20"
};

std::vector<Program> all_programs();

// The report as a terminal of this width gets it; `columns` 0: no terminal.
std::string render_report(const Program& program, std::size_t columns, bool colour = false, bool full = false);

// docs/reports.md.
std::string make_reports_page();

}  // namespace forksight::test
