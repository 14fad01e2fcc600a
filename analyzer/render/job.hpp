// What CI systems show of a job. GitHub shows annotations and a step summary. Many CI systems show a JUnit document.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.hpp"

namespace forksight::render {

// Absolute folders that contain sources. GitHub shows an annotation only for a file in the workspace. A relative file
// name in a stack may be relative to either folder.
struct Sources {
  std::filesystem::path workspace;
  std::filesystem::path cwd;
};

// Returns a workflow command of GitHub for each finding. The place of the annotation is the innermost frame of the
// finding's stack whose file is in the workspace. If there is no such frame, the culprit's stack is searched in the
// same way. If the culprit's stack has no such frame either, the annotation has no place.
std::string render_annotations(const std::vector<Finding>& findings, const Sources& sources);
// Returns a workflow command for an error without a place.
std::string render_annotation(std::string_view sentence);

// GitHub drops the summaries of a step if all of them together are longer than 1024 KiB. So one summary of forksight
// has a quarter of that at most.
inline constexpr std::size_t kMostSummary = std::size_t{256} * 1024;

// Returns a section for a step summary, in Markdown. `text` is shown as code. If `text` is longer than kMostSummary, it
// is cut at the end of a line.
std::string render_step_summary(std::string_view headline, std::string_view text);

enum class JobState {
  kPassed,
  kFailed,
  kError  // it is not known whether the job passed
};

struct JobCase {
  std::string name;
  double seconds = 0;
  JobState state = JobState::kPassed;
  std::string message;  // one line; "" for a job that passed
  std::string text;     // lines
};

// Returns a JUnit document (XML) with one test case, in the form that Jenkins and GitLab read.
std::string render_junit(const JobCase& job);

}  // namespace forksight::render
