// cases.json: the cases of a suite, as they were built. All paths in it are relative to its folder:
// cases.json, bin/PROGRAM, src/FOLDER/SOURCE.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "result.hpp"
#include "suite/expectations.hpp"

namespace forksight::suite {

struct Case {
  std::string name;     // "lost_openmp_pool.repaired"
  std::string folder;   // "openmp": of which library, or of what kind
  std::string variant;  // "", "repaired" ...
  std::filesystem::path source;
  std::filesystem::path program;             // a script, if there is an interpreter
  std::filesystem::path interpreter;         // ""
  std::vector<std::filesystem::path> loads;  // libraries that come along and are opened by name
  std::vector<std::string> modules;          // of Python, that the script imports
  std::vector<std::pair<std::string, std::string>> environment;
  bool on_real_driver = false;      // the machine's own CUDA driver instead of the test driver
  std::vector<std::string> labels;  // "stress", "gpu": only when asked for

  // As it is run: a script gets the name of its variant as its argument.
  std::vector<std::string> command() const;
};

struct Suite {
  std::filesystem::path folder;
  std::vector<Case> cases;  // in the order of the manifest
};

Result<Suite> read_suite(const std::filesystem::path& folder);

// Where the suite of the running executable lies: of an installation or of a build tree.
Result<std::filesystem::path> find_suite();

// Nothing is found in it, by intention.
bool is_control(const Expectations& expected);
// What is found: under observation, or, where a run says nothing of a hang, by `forksight why`.
const std::vector<ExpectedFinding>& findings_of(const Expectations& expected);

}  // namespace forksight::suite
