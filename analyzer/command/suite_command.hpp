// `forksight suite`: lists the cases of the hazard suite, and checks whether forksight finds their hazards.
#pragma once

#include <string>

#include "suite/select.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

// Adds the verb. If the verb was chosen and the line is valid, `status` is the exit status when the parse returns.
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
// Reads the suite and chooses its cases. If that fails, prints an error, sets `status` to the exit status, and returns
// false.
bool choose_suite(const SuiteChoice& choice, bool all, ChosenSuite& chosen, int& status);

void add_suite_list(CLI::App& verb, int& status);
void add_suite_run(CLI::App& verb, int& status);

}  // namespace forksight
