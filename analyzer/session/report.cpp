#include "session/report.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "diagnose/diagnose.hpp"
#include "files/replace_file.hpp"
#include "render/json.hpp"
#include "render/terminal.hpp"
#include "render/text.hpp"
#include "render/waits.hpp"

namespace forksight {
namespace {

// Writes the whole text, also to a non-blocking pipe. Returns false if a part was not written, for example because no
// process reads the pipe any more. Then errno has the reason.
bool write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
      continue;
    }
    if (errno == EAGAIN) {
      pollfd waiting{fd, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// A sentence begins with "process 123 (app)". Only the text before "(" is compared, because the rest of the sentence
// contains the duration of the hang, and the duration changes.
std::string beginning_of(const std::string& sentence) { return sentence.substr(0, sentence.find('(')); }

// Returns the text about the findings `shown`, which are some of `findings`, and about hangs without a finding.
std::string render_found(const model::Model& model, const std::vector<Finding>& shown,
                         const std::vector<std::string>& sentences, const std::vector<Finding>& findings,
                         const render::TextOptions& how) {
  std::string text = shown.empty() ? "" : render::render_text(model, shown, how);
  for (const std::string& sentence : render::fold(sentences, "unexplained hangs", how))
    text += render::render_line("forksight: " + sentence, how);
  if (!sentences.empty()) text += render::render_waits(model, find_unexplained_processes(model, findings), how);
  return text;
}

}  // namespace

RunReport::RunReport(const RunOptions& options) : options_(options) {}

render::TextOptions RunReport::text_options() const {
  render::TextOptions text = render::options_for(output_ ? output_->fd() : STDERR_FILENO);
  text.full = options_.full;
  return text;
}

std::string RunReport::open() {
  if (options_.report.empty()) return "";
  if (is_on_standard_output()) {
    // Standard output is never truncated and written again, because it may be a file that the user appends to.
    files::Descriptor copy(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!copy) return fmt::format("standard output: cannot be written: {}", std::strerror(errno));
    output_.emplace(std::move(copy), false);
    return "";
  }
  auto opened = files::open_output(options_.report.string());
  if (!opened) return fmt::format("{}: cannot be written: {}", options_.report.string(), opened.error());
  output_ = std::move(opened).value();
  return "";
}

// Writes a whole report. A regular file always contains exactly one report.
void RunReport::write_whole(const std::string& text) {
  text_ = text;
  int error = 0;
  if (is_regular()) {
    error = output_->write(text);
  } else if (!write_all(output_->fd(), text)) {
    error = errno;
  }
  const std::string place = is_on_standard_output() ? "standard output" : options_.report.string();
  if (error != 0) problem_ = fmt::format("{}: cannot be written: {}", place, std::strerror(error));
  if (error == 0 && is_regular()) problem_.clear();  // a regular file is whole again. A stream would still have the gap
}

void RunReport::show_instead(const model::Model& model, const std::vector<Finding>& findings,
                             const std::vector<std::string>& unexplained) {
  if (problem_.empty()) return;
  std::vector<Finding> shown;
  for (const Finding& finding : findings) {
    if (shown_instead_.insert(finding.fingerprint).second) shown.push_back(finding);
  }
  std::vector<std::string> sentences;
  for (const std::string& sentence : unexplained) {
    if (shown_instead_.insert(beginning_of(sentence)).second) sentences.push_back(sentence);
  }
  render::TextOptions how = render::options_for(STDERR_FILENO);
  how.full = options_.full;
  write_all(STDERR_FILENO, render_found(model, shown, sentences, findings, how));
}

void RunReport::write_document(const model::Model& model, const std::vector<Finding>& findings) {
  write_whole(render::render_json(model, findings));
}

bool RunReport::say(const model::Model& model, const std::vector<Finding>& findings,
                    const std::vector<std::string>& unexplained) {
  std::vector<Finding> fresh;
  for (const Finding& finding : findings) {
    if (reported_findings_.insert(finding.fingerprint).second) fresh.push_back(finding);
  }
  std::vector<std::string> shown_sentences;
  bool has_new_findings = !fresh.empty();
  for (const std::string& sentence : unexplained) {
    const bool is_new = reported_findings_.insert(beginning_of(sentence)).second;
    has_new_findings = has_new_findings || is_new;
    if (is_new || is_regular()) shown_sentences.push_back(sentence);
  }
  if (!has_new_findings) return false;
  if (options_.format == ReportFormat::kJson) {
    if (!is_on_standard_output()) write_document(model, findings);
    show_instead(model, findings, unexplained);
    return true;
  }
  const std::vector<Finding>& shown = is_regular() ? findings : fresh;
  const std::string text = render_found(model, shown, shown_sentences, findings, text_options());
  if (output_) {
    write_whole(text);
  } else {
    write_all(STDERR_FILENO, text);
  }
  show_instead(model, findings, unexplained);
  return true;
}

void RunReport::say_waits(const model::Model& model, const std::vector<model::ProcessId>& processes) {
  const bool is_beside = !output_ || options_.format == ReportFormat::kJson;
  if (is_beside && options_.quiet) return;
  waits_ = render::render_waits(model, processes, text_options());
  // A file already contains the findings so far. The waits are appended to these findings. say_at_end() later writes
  // the whole file again.
  const bool is_in_file = !is_beside && is_regular();
  if (is_in_file) write_whole(text_ + waits_);
  if (!is_in_file || !problem_.empty()) write_all(is_beside || is_in_file ? STDERR_FILENO : output_->fd(), waits_);
}

void RunReport::withdraw(std::int32_t pid, const std::vector<std::string>& fingerprints) {
  bool was_shown_instead = false;
  for (const std::string& fingerprint : fingerprints) {
    reported_findings_.erase(fingerprint);
    was_shown_instead = shown_instead_.erase(fingerprint) > 0 || was_shown_instead;
  }
  is_stale_ = true;
  // A document and a regular file are written again at the end, without the withdrawn findings.
  const bool is_written_again = options_.format == ReportFormat::kJson || is_regular();
  if (is_written_again && !was_shown_instead) return;
  write_all(output_ && !was_shown_instead ? output_->fd() : STDERR_FILENO,
            fmt::format("forksight: process {} went on. So the hang that was reported above did not last, and its "
                        "report is withdrawn\n",
                        pid));
}

void RunReport::say_at_end(const model::Model& model, const std::vector<Finding>& findings,
                           const std::vector<std::string>& unexplained) {
  const bool has_new_findings = say(model, findings, unexplained);
  if (options_.format == ReportFormat::kJson) {
    // A regular file always gets the final state. Standard output gets its only document now. Any other stream gets a
    // document now only if it has none so far, or if a finding in its latest document was withdrawn.
    const bool is_missing = !has_new_findings && (reported_findings_.empty() || is_stale_);
    const bool is_worth_it = !options_.quiet || !findings.empty() || is_stale_;
    if (is_regular() || is_on_standard_output() || (is_missing && is_worth_it)) write_document(model, findings);
  } else if (is_regular()) {
    const render::TextOptions how = text_options();
    std::string text = render::render_text(model, findings, how);
    text += render::render_waits(model, find_unexplained_processes(model, findings), how);
    text += waits_;
    if (!end_.empty()) text += fmt::format("forksight: {}\n", end_);
    const std::string limits = render::render_limits(model.limits, how);
    if (!limits.empty()) text += "\n" + limits;
    write_whole(text);
  } else if (is_on_standard_output() && reported_findings_.empty() && !options_.quiet) {
    write_whole(render::render_text(model, findings, text_options()));
  }
  show_instead(model, findings, unexplained);
}

void RunReport::note_end(int status) {
  if (!WIFSIGNALED(status)) return;
  const char* const name = ::sigabbrev_np(WTERMSIG(status));
  end_ = fmt::format("the command was ended by signal {}{}", WTERMSIG(status),
                     name == nullptr ? std::string() : fmt::format(" (SIG{})", name));
}

void RunReport::say_summary(const model::Model& model, const std::vector<Finding>& findings, std::size_t unexplained,
                            std::size_t processes, const std::filesystem::path& folder) const {
  if (!is_regular() || !problem_.empty()) {
    for (const std::string& limit : render::merge_limits(model.limits)) note("not seen: " + limit);
  }
  if (!end_.empty()) note(end_);
  std::string line = count_findings(findings);
  if (line.empty()) line = unexplained == 0 ? "nothing found" : "no finding";
  if (unexplained > 0) line += fmt::format(", but {} unexplained hang{}", unexplained, unexplained == 1 ? "" : "s");
  line += fmt::format(" in {} process{}", processes, processes == 1 ? "" : "es");
  if (!problem_.empty()) write_all(STDERR_FILENO, fmt::format("forksight: error: {}\n", problem_));
  if (output_ && problem_.empty() && !is_on_standard_output())
    line += fmt::format("; report in {}", options_.report.string());
  if (!folder.empty()) line += fmt::format("; traces in {}", folder.string());
  note(line);
}

void RunReport::note(const std::string& line) const {
  if (!options_.quiet) warn(line);
}

void RunReport::warn(const std::string& line) const {
  write_all(STDERR_FILENO, render::render_line("forksight: " + line, render::options_for(STDERR_FILENO)));
}

std::string count_findings(const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  const auto count = [&](Certainty certainty) {
    return std::count_if(findings.begin(), findings.end(),
                         [&](const Finding& finding) { return finding.harm == certainty; });
  };
  std::string parts;
  const auto add = [&](Certainty certainty, const char* word) {
    if (const auto number = count(certainty); number > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", number, word);
  };
  add(Certainty::kProven, "certain");
  add(Certainty::kLikely, "likely");
  add(Certainty::kPossible, "possible");
  return fmt::format("{} finding{} ({})", findings.size(), findings.size() == 1 ? "" : "s", parts);
}

}  // namespace forksight
