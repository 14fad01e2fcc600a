// A suite of one case, which a test makes. The program of the case is a script. Another script, the stand-in, replaces
// forksight.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "suite/results.hpp"
#include "suite/runner.hpp"

namespace forksight::test {

// Returns the finding that the case expects. By default, the stand-in reports this finding.
nlohmann::json good_finding();

// Returns the finding with another value at a path such as "/culprit/holder/name".
nlohmann::json changed(nlohmann::json finding, const char* path, nlohmann::json value);

nlohmann::json report_of(std::vector<nlohmann::json> findings);

class MadeSuite {
 public:
  MadeSuite();
  ~MadeSuite();
  MadeSuite(const MadeSuite&) = delete;
  MadeSuite& operator=(const MadeSuite&) = delete;

  // The source with the expectations, the text of the program, and the reports of the stand-in.
  std::string source;
  std::string program = "echo 'child: 2 threads'";
  std::string variant;
  nlohmann::json observed = report_of({good_finding()});
  nlohmann::json cured = report_of({changed(good_finding(), "/outcome", "cured")});
  nlohmann::json why = report_of({good_finding()});
  nlohmann::json core = report_of({good_finding()});
  std::string stand_in;  // shell commands that the stand-in runs first
  std::chrono::milliseconds limit{60'000};
  std::chrono::seconds case_limit{200};
  std::set<std::string> parts;
  std::vector<std::pair<std::string, std::string>> environment;

  // Reads the expectations. An error says what is wrong with them.
  Result<suite::Expectations> read() const;
  // Judges the case in a worker process. The expectations must be valid.
  suite::CaseResult judge();

  const std::filesystem::path& folder() const { return folder_; }
  void write(const std::string& name, const std::string& text, bool is_program = false) const;

 private:
  std::filesystem::path folder_;
  suite::Case case_;
};

std::string all_lines(const suite::CaseResult& result);

}  // namespace forksight::test
