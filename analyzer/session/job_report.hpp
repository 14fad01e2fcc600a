// What a CI system gets to see of a job beside the text: report.json, a JUnit document, and on GitHub annotations and a
// section in the summary of the step.
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

class JobReport {
 public:
  // `document` is where report.json is to be; `shown` is its name for people.
  JobReport(const RunOptions& options, std::filesystem::path document, std::filesystem::path shown);

  // Writes a JUnit document that says that the job has not ended: a path that cannot be written is known before CMD
  // starts, and the document is whole whatever ends this process. "" or why not.
  std::string open();

  // Tells what is new, and writes the documents. That goes to standard error where it goes to GitHub.
  void tell(const model::Model& model, const std::vector<Finding>& findings,
            const std::vector<std::string>& unexplained);

  // What processes waited for when their time was up; on standard error, too.
  void tell_waits(const model::Model& model, const std::vector<model::ProcessId>& processes);

  // A hang was told.
  bool has_told_hang() const { return has_told_hang_; }
  bool has_document() const { return has_document_; }

  // One line on standard error, and in the JUnit document.
  void say(const std::string& sentence);
  // The same, and for GitHub an annotation and a section: the job failed for this, and no finding says so.
  void say_failure(const std::string& sentence);

  // CMD was not started.
  void fail(const std::string& why);
  // The end, with the status that forksight exits with.
  void end(int status, std::chrono::duration<double> time);

 private:
  void write_junit(render::JobState state, const std::string& message);
  void complain(const std::string& problem);
  void add_summary(const std::string& headline, const std::string& text);

  const RunOptions& options_;
  std::filesystem::path document_;
  std::filesystem::path shown_;
  std::set<std::string> told_;  // fingerprints, and sentences
  std::string first_;           // what the job failed for, as far as it is known
  std::string text_;            // all that was told
  double seconds_ = 0;
  bool has_told_hang_ = false;
  bool has_document_ = false;
};

}  // namespace forksight
