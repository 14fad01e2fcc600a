// What a case expects: the EXPECT lines and MARK comments of its source.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "result.hpp"

namespace forksight::suite {

struct ExpectedFrame {
  std::string function;
  std::string file;
  int line = 0;
};

struct ExpectedFinding {
  std::string rule;
  std::string certainty;
  std::string outcome;
  std::vector<std::pair<std::string, std::string>> fields;                 // culprit, lock, holder, start, library ...
  std::vector<std::pair<std::string, std::vector<ExpectedFrame>>> stacks;  // culprit, stack, fork; innermost first
};

// A run whose options change how the program ends (EXPECT-CURED and EXPECT-RUN lines). The program must end well,
// unless an EXPECT-RUN line says something else.
struct ExpectedRun {
  std::vector<std::string> options;
  std::vector<std::string> printed;  // whole lines that the program must print
  std::string outcome = "cured";     // the outcome of all findings; "none": there must be no finding
  int status = 0;
  std::vector<std::string> says;  // texts that the sentences of the findings must contain
  std::string rule;               // the rule of the only finding, if it differs from the rule without these options
};

struct Expectations {
  std::string bare;  // hang, spin, error, ok
  std::vector<ExpectedFinding> findings;
  std::vector<ExpectedRun> runs;
  std::vector<ExpectedFinding> why;  // what `forksight why` finds about the bare program
  // what `forksight core` finds in a core of the process that hangs, if the case asks for this
  std::optional<std::vector<ExpectedFinding>> core;
  std::vector<std::string> options;  // options for every run under forksight
  std::string unknown;               // the reason why `forksight why` finds nothing, in words
};

// Reads what this variant of the case expects. An error is a sentence that names the invalid line.
Result<Expectations> read_expectations(const std::filesystem::path& source, const std::string& variant);

// Returns the name of the file to which this soname links in the system's library folder, or the soname itself.
std::string file_of_library(const std::string& soname);

}  // namespace forksight::suite
