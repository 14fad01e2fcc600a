// What a CI system gets from a job besides the text report: report.json and a JUnit document. On GitHub, the CI system
// also gets annotations and a section in the summary of the step.
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "render/job.hpp"
#include "session/session.hpp"

namespace forksight {

// The name of the JSON report in the folder of the run.
inline constexpr char kJobReportFile[] = "report.json";

class JobReport {
 public:
  // `document` is the path of report.json; `shown` is its name for people.
  JobReport(const RunOptions& options, std::filesystem::path document, std::filesystem::path shown);

  // Writes a JUnit document that says that forksight did not see the end of CMD. This document stays if forksight is
  // killed. If the path of the document cannot be written, forksight learns this before CMD starts. Returns "" or the
  // reason of the failure. A full disk is no reason, because the disk may have room when CMD has ended.
  std::string open();

  // Reports new findings, and new sentences about hangs without a finding. Writes report.json and a section of the step
  // summary. Writes the JUnit document if a hang was reported. On GitHub also prints annotations to standard error.
  void tell(const model::Model& model, const std::vector<Finding>& findings,
            const std::vector<std::string>& unexplained);

  // Reports what the processes waited for when the job reached its limit: on standard error, in the step summary and in
  // the JUnit document.
  void tell_waits(const model::Model& model, const std::vector<model::ProcessId>& processes);

  bool has_reported_hang() const { return has_reported_hang_; }
  // True if anything was reported: a hang, or another finding.
  bool has_reported() const { return !reported_.empty(); }
  bool has_document() const { return has_document_; }
  // True if the latest JUnit document could not be written.
  bool has_failed() const { return !junit_problem_.empty(); }

  // Writes one line to standard error. The line is also in the next JUnit document.
  void say(const std::string& sentence);
  // Reports why the job failed, for reasons other than findings. Writes the sentence as say() does, and adds a section
  // to the step summary. On GitHub also prints an annotation.
  void say_failure(const std::string& sentence);

  // Writes to the JUnit document why CMD was not started.
  void fail(const std::string& why);
  // If report.json was written, says on standard error where it is. Writes the final JUnit document. `status` is the
  // exit status of forksight.
  void end(int status, std::chrono::duration<double> time);

 private:
  void write_junit(render::JobState state, const std::string& message);
  void report_error(const std::string& problem);
  // Reports why the JUnit document cannot be written, unless the reason is the same as before; "": it was written.
  void report_junit(const std::string& problem);
  void add_summary(const std::string& headline, const std::string& text);

  const RunOptions& options_;
  std::filesystem::path document_;
  std::filesystem::path shown_;
  std::set<std::string> reported_;  // fingerprints, and beginnings of sentences
  std::string first_reason_;        // the first known reason why the job failed
  std::string text_;                // everything that was reported
  std::string junit_problem_;       // why the latest JUnit document could not be written; "" if it was
  double seconds_ = 0;
  bool has_reported_hang_ = false;
  bool has_document_ = false;
};

}  // namespace forksight
