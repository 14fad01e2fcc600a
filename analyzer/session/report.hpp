// What `run` says, and where. A finding is said once a run, when it is first made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "render/text.hpp"
#include "result.hpp"
#include "session/session.hpp"

namespace forksight {

class RunReport {
 public:
  explicit RunReport(const RunOptions& options);
  ~RunReport();
  RunReport(const RunReport&) = delete;
  RunReport& operator=(const RunReport&) = delete;

  // Opens --report FILE, so that a path that cannot be written is said before CMD starts. "" if all is well.
  std::string open();

  // Says the findings that are new, and the sentences about unexplained processes that are. True if any was.
  bool say(const model::Model& model, const std::vector<Finding>& findings,
           const std::vector<std::string>& unexplained);
  // The same at the end; for JSON the whole, found or not.
  void say_last(const model::Model& model, const std::vector<Finding>& findings,
                const std::vector<std::string>& unexplained);

  // What these processes of `model` wait for; as text, also beside a document, which has findings.
  void say_waits(const model::Model& model, const std::vector<model::ProcessId>& processes);

  // How CMD ended, as of wait(2): told at the end if that was by a signal. A document has it with the process.
  void note_end(int status);
  // Process `pid` goes on: these findings are no more.
  void take_back(std::int32_t pid, const std::vector<std::string>& fingerprints);

  // The last line, and what could not be seen. `folder` is where the traces are, "" if there are none.
  void say_summary(const model::Model& model, const std::vector<Finding>& findings, std::size_t unexplained,
                   std::size_t processes, const std::filesystem::path& folder) const;

  // The report is not in --report FILE as a whole.
  bool has_failed() const { return !problem_.empty(); }

  // One line of forksight's own on standard error, unless quiet.
  void note(const std::string& line) const;

 private:
  render::TextOptions text_options() const;
  void write_whole(const std::string& text);
  void write_document(const model::Model& model, const std::vector<Finding>& findings);
  bool is_on_standard_output() const { return options_.report == kStandardOutput; }

  const RunOptions& options_;
  int file_ = -1;  // --report FILE, or our standard output
  bool is_regular_ = false;
  std::string problem_;         // why the latest report is not in FILE; "": it is
  std::string waits_;           // what say_waits() said
  std::string end_;             // of CMD, "" where nothing is to be told
  bool is_stale_ = false;       // the latest document holds something that was taken back
  std::set<std::string> said_;  // fingerprints, and sentences
};

// "1 finding (1 certain)"; "" for none.
std::string count_findings(const std::vector<Finding>& findings);

}  // namespace forksight
