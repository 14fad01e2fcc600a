// cases.json: the cases of a suite, as they were built. The folder of a suite contains cases.json, bin/PROGRAM and
// src/FOLDER/SOURCE. All paths in cases.json are relative to this folder.
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
  std::string folder;   // "openmp": the library, or the kind of case
  std::string variant;  // "", "repaired" ...
  std::filesystem::path source;
  std::filesystem::path program;
  std::filesystem::path interpreter;         // "": `program` is no script
  std::vector<std::filesystem::path> loads;  // libraries of the case that its program opens by name
  std::vector<std::string> modules;          // Python modules that the script imports
  std::vector<std::pair<std::string, std::string>> environment;
  bool on_real_driver = false;      // runs on the machine's own CUDA driver instead of the test driver
  std::vector<std::string> labels;  // "stress", "gpu": then the case runs only if the user asks for it

  // The command line of the case: a script gets the name of its variant as its argument.
  std::vector<std::string> command() const;
};

struct Suite {
  std::filesystem::path folder;
  std::vector<Case> cases;  // in the order of the manifest
};

Result<Suite> read_suite(const std::filesystem::path& folder);

// Finds the folder of the suite that was installed or built together with the running executable.
Result<std::filesystem::path> find_suite();

// True if the case is a control: neither `run` nor `why` may report a finding.
bool is_control(const Expectations& expected);
// Returns the findings that `forksight run` must report. If `run` must report no finding although the bare program
// hangs, returns the findings that `forksight why` must report.
const std::vector<ExpectedFinding>& findings_of(const Expectations& expected);

}  // namespace forksight::suite
