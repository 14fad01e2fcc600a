// `forksight suite`: lists the cases of the hazard suite, and checks that all of them are found.
#pragma once

#include <string>

#include "suite/select.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

// Adds the verb; `status` as in add_report_command.
void add_suite_command(CLI::App& app, int argc, const char* const* argv, int& status);

// The options that `suite list` and `suite run` have in common.
struct SuiteChoice {
  std::string folder;  // "": the suite that belongs to this executable
  suite::Filter filter;
};
void add_suite_choice(CLI::App& verb, SuiteChoice& choice);

struct ChosenSuite {
  suite::Suite suite;
  std::vector<suite::Entry> entries;
};
// False after an error message; `status` is then the exit status.
bool choose_suite(const SuiteChoice& choice, bool all, ChosenSuite& chosen, int& status);

void add_suite_list(CLI::App& verb, int& status);
void add_suite_run(CLI::App& verb, int& status);

}  // namespace forksight
