// What a case says of itself: the EXPECT lines and MARK comments of its source.
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

// A run whose options change how the program ends: well, if nothing else is said.
struct ExpectedRun {
  std::vector<std::string> options;
  std::vector<std::string> printed;  // whole lines of its standard output
  std::string outcome = "cured";     // of what was found else; "none": nothing is
  int status = 0;
  std::vector<std::string> says;  // parts of the findings' sentences
  std::string rule;               // of the one finding, where it is another than without these options
};

struct Expectations {
  std::string bare;  // hang, spin, error, ok
  std::vector<ExpectedFinding> findings;
  std::vector<ExpectedRun> runs;
  std::vector<ExpectedFinding> why;                  // what `forksight why` finds of the bare program
  std::optional<std::vector<ExpectedFinding>> core;  // what `forksight core` finds of its child's core, where asked
  std::vector<std::string> options;                  // of every run under forksight
  std::string unknown;                               // why `forksight why` finds nothing, in words
};

// An error is the sentence that says which line makes no sense.
Result<Expectations> read_expectations(const std::filesystem::path& source, const std::string& variant);

// The name of the installed file that this soname is a link to, or the soname itself.
std::string file_of_library(const std::string& soname);

}  // namespace forksight::suite
