#include "render/job.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "render/printable.hpp"
#include "render/xml.hpp"

namespace forksight::render {
namespace {

// Escapes the characters that have a meaning in a workflow command: "%", and in a property also ":" and ",".
std::string escape(std::string_view text, bool is_property) {
  std::string escaped;
  for (const char one : printable(text)) {
    const bool is_special = one == '%' || (is_property && (one == ':' || one == ','));
    escaped += is_special ? fmt::format("%{:02X}", static_cast<unsigned char>(one)) : std::string(1, one);
  }
  return escaped;
}

namespace fs = std::filesystem;

// Finds a file with a relative name in the working directory or the workspace. Returns an empty path if neither has the
// file. Then the file may be the source of a library that was compiled elsewhere.
fs::path find_file(const std::string& file, const Sources& sources) {
  if (fs::path(file).is_absolute()) return file;
  std::error_code ignored;
  for (const fs::path& folder : {sources.cwd, sources.workspace}) {
    if (fs::exists(folder / file, ignored)) return folder / file;
  }
  return {};
}

// Returns the file's name relative to the workspace; "" if the file is outside of the workspace.
std::string find_source(const std::string& file, const Sources& sources) {
  if (file.empty()) return {};
  const fs::path inside = find_file(file, sources).lexically_normal().lexically_relative(sources.workspace);
  return inside.empty() || *inside.begin() == ".." ? std::string() : inside.string();
}

std::string find_place(const model::Stack& stack, const Sources& sources) {
  for (const model::Frame& frame : stack.frames) {
    const std::string file = frame.line > 0 ? find_source(frame.file, sources) : std::string();
    if (!file.empty()) return fmt::format("file={},line={},", escape(file, true), frame.line);
  }
  return {};
}

const char* level_of(const Finding& finding) {
  if (finding.outcome == Outcome::kCured) return "notice";
  return finding.harm >= Certainty::kLikely ? "error" : "warning";
}

}  // namespace

std::string render_annotations(const std::vector<Finding>& findings, const Sources& sources) {
  std::string text;
  for (const Finding& finding : findings) {
    std::string place = find_place(finding.stack, sources);
    if (place.empty()) place = find_place(finding.culprit.stack, sources);
    text += fmt::format("::{} {}title=forksight {}::{}\n", level_of(finding), place, escape(finding.rule, true),
                        escape(finding.summary, false));
  }
  return text;
}

std::string render_annotation(std::string_view sentence) {
  return fmt::format("::error title=forksight::{}\n", escape(sentence, false));
}

std::string render_step_summary(std::string_view headline, std::string_view text) {
  std::string section = fmt::format("### forksight: {}\n", printable(headline));
  const bool is_cut = text.size() > kMostSummary;
  if (is_cut) text = text.substr(0, text.rfind('\n', kMostSummary) + 1);
  // In Markdown, a line that begins with four blanks is shown as code, no matter which characters it contains.
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    section += fmt::format("{}    {}\n", start == 0 ? "\n" : "", printable(text.substr(start, end - start)));
    start = end + 1;
  }
  if (is_cut) section += "\nThe rest is in the log of the step.\n";
  return section + "\n";
}

std::string render_junit(const JobCase& job) {
  const bool has_failed = job.state == JobState::kFailed;
  const bool has_error = job.state == JobState::kError;
  const std::string counts = fmt::format(R"(tests="1" failures="{}" errors="{}" skipped="0" time="{:.3f}")",
                                         has_failed ? 1 : 0, has_error ? 1 : 0, job.seconds);
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"forksight ci\" {}>\n"
      "  <testsuite name=\"forksight ci\" {}>\n"
      "    <testcase name=\"{}\" classname=\"forksight.ci\" time=\"{:.3f}\"",
      counts, counts, escape_xml(job.name), job.seconds);
  if (job.state == JobState::kPassed) {
    text += "/>\n";
  } else {
    const char* const element = has_failed ? "failure" : "error";
    text +=
        fmt::format(">\n      <{} message=\"{}\" type=\"{}\">{}</{}>\n    </testcase>\n", element,
                    escape_xml(job.message), has_failed ? "failed" : "unknown", escape_xml_lines(job.text), element);
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace forksight::render
