// A suite of one case that a test makes. The program of the case is a script. Another script stands in for the
// forksight that is judged.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "suite/results.hpp"
#include "suite/runner.hpp"

namespace forksight::test {

// A finding that is as the case expects it. The stand-in reports it.
nlohmann::json good_finding();

// The finding with another value at a path like "/culprit/holder/name".
nlohmann::json changed(nlohmann::json finding, const char* path, nlohmann::json value);

nlohmann::json report_of(std::vector<nlohmann::json> findings);

class MadeSuite {
 public:
  MadeSuite();
  ~MadeSuite();
  MadeSuite(const MadeSuite&) = delete;
  MadeSuite& operator=(const MadeSuite&) = delete;

  // The source (what the case expects), the program (what it does), and the reports about it.
  std::string source;
  std::string program = "echo 'child: 2 threads'";
  std::string variant;
  nlohmann::json observed = report_of({good_finding()});
  nlohmann::json cured = report_of({changed(good_finding(), "/outcome", "cured")});
  nlohmann::json why = report_of({good_finding()});
  nlohmann::json core = report_of({good_finding()});
  std::string stand_in;  // shell lines that the stand-in runs at its start
  std::chrono::milliseconds limit{1000};
  std::chrono::seconds case_limit{60};
  std::set<std::string> parts;
  std::vector<std::pair<std::string, std::string>> environment;

  // Reads the expectations; the error says what is wrong in them.
  Result<suite::Expectations> read() const;
  // Judges the case in a worker process. The expectations must be valid.
  suite::CaseResult judge();

  const std::filesystem::path& folder() const { return folder_; }
  void write(const std::string& name, const std::string& text, bool is_program = false) const;

 private:
  std::filesystem::path folder_;
  suite::Case case_;
};

// All lines of the result in one text.
std::string all_lines(const suite::CaseResult& result);

}  // namespace forksight::test
