// Writes the report of `run` to the place that the user chose. Each finding is reported once in a run, when it is first
// made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "files/replace_file.hpp"
#include "model/model.hpp"
#include "render/text.hpp"
#include "result.hpp"
#include "session/session.hpp"

namespace forksight {

class RunReport {
 public:
  explicit RunReport(const RunOptions& options);
  ~RunReport() = default;
  RunReport(const RunReport&) = delete;
  RunReport& operator=(const RunReport&) = delete;

  // Opens --report FILE, so that a path that cannot be written is reported before CMD starts. Returns "" or the reason
  // of the failure.
  std::string open();

  // Reports new findings, and new sentences about hangs without a finding. Returns true if there was a new finding or
  // sentence.
  bool say(const model::Model& model, const std::vector<Finding>& findings,
           const std::vector<std::string>& unexplained);
  // Like say(), but for the end of the run. In JSON format, writes the whole document, even if there are no findings.
  void say_at_end(const model::Model& model, const std::vector<Finding>& findings,
                  const std::vector<std::string>& unexplained);

  // Reports what these processes of `model` wait for. A JSON document contains only findings, so in that format the
  // text goes to standard error.
  void say_waits(const model::Model& model, const std::vector<model::ProcessId>& processes);

  // Notes how CMD ended; `status` is the status of wait(2). If a signal ended CMD, the end of a text report says so. A
  // JSON document has the status in the entry of the process.
  void note_end(int status);
  // Withdraws these findings, because process `pid` goes on.
  void withdraw(std::int32_t pid, const std::vector<std::string>& fingerprints);

  // Writes to standard error what forksight could not see, and one line that sums up the run. `folder` has the traces;
  // "" if there are none.
  void say_summary(const model::Model& model, const std::vector<Finding>& findings, std::size_t unexplained,
                   std::size_t processes, const std::filesystem::path& folder) const;

  // True if --report FILE does not have the whole report. Then standard error has it, in text format.
  bool has_failed() const { return !problem_.empty(); }

  // warn() and note() write one line to standard error. note() writes nothing if the user asked for a quiet run.
  void warn(const std::string& line) const;
  void note(const std::string& line) const;

 private:
  render::TextOptions text_options() const;
  bool is_regular() const { return output_ && output_->is_regular(); }
  void write_whole(const std::string& text);
  // If FILE does not have the latest report, shows on standard error what was not shown there before.
  void show_instead(const model::Model& model, const std::vector<Finding>& findings,
                    const std::vector<std::string>& unexplained);
  void write_document(const model::Model& model, const std::vector<Finding>& findings);
  bool is_on_standard_output() const { return options_.report == kStandardOutput; }

  const RunOptions& options_;
  std::optional<files::OutputFile> output_;  // --report FILE, or forksight's standard output
  std::string problem_;                      // why FILE does not have the latest report; "" if FILE has it
  std::string text_;                         // the latest text of write_whole()
  std::string waits_;                        // the lines of say_waits()
  std::string end_;                          // how CMD ended; "" if that is not reported
  bool is_stale_ = false;                    // the latest document contains something that was withdrawn
  std::set<std::string> reported_findings_;  // fingerprints, and beginnings of sentences
  std::set<std::string> shown_instead_;      // the same, of what show_instead() has shown
};

// Returns words such as "1 finding (1 certain)"; "" if there is no finding.
std::string count_findings(const std::vector<Finding>& findings);

}  // namespace forksight
