#include "session/job_report.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "diagnose/diagnose.hpp"
#include "files/descriptor.hpp"
#include "files/error_output.hpp"
#include "files/replace_file.hpp"
#include "render/json.hpp"
#include "render/terminal.hpp"
#include "render/text.hpp"
#include "render/waits.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

std::string cannot_write(const fs::path& file, const std::string& why) {
  return fmt::format("{}: cannot be written: {}", file.string(), why);
}

// write() and append() return "" or the reason of the failure.
std::string write(const fs::path& file, const std::string& text) {
  const std::string why = files::write_output(file.string(), text);
  return why.empty() ? "" : cannot_write(file, why);
}

// Writes the text to a FIFO or a device that need not have room for it. Waits for its reader for at most two seconds in
// all. Returns 0 or an errno.
int write_without_waiting(int fd, std::string_view text) {
  constexpr auto kPatience = std::chrono::seconds(2);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote >= 0) {
      text.remove_prefix(static_cast<std::size_t>(wrote));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return errno;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return ETIMEDOUT;
    pollfd room{fd, POLLOUT, 0};
    ::poll(&room, 1, static_cast<int>(left.count()));
  }
  return 0;
}

// O_NONBLOCK: if the file is a FIFO that nobody reads, open() fails. Otherwise it would wait, and the job would not end.
std::string append(const fs::path& file, const std::string& text) {
  constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const files::Descriptor opened(::open(file.c_str(), kAppend, 0666));
  const int error = opened ? write_without_waiting(opened.get(), text) : errno;
  if (error == 0) return "";
  struct stat status {};
  const bool is_fifo = ::stat(file.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  if (is_fifo && error == ENXIO) return cannot_write(file, "it is a FIFO that no process reads");
  if (error == ETIMEDOUT) return cannot_write(file, "its reader reads too slowly");
  return cannot_write(file, std::strerror(error));
}

// Returns the value of an environment variable; "" if it is not set.
std::string read_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_on_github() { return !read_variable("GITHUB_ACTIONS").empty(); }

// Returns the folder of the sources.
fs::path find_workspace() {
  std::error_code ignored;
  const std::string workspace = read_variable("GITHUB_WORKSPACE");
  return workspace.empty() ? fs::current_path(ignored) : fs::path(workspace);
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

void put(const std::string& text) { files::write_error(text); }

}  // namespace

JobReport::JobReport(const RunOptions& options, fs::path document, fs::path shown)
    : options_(options), document_(std::move(document)), shown_(std::move(shown)) {}

std::string JobReport::open() {
  if (options_.job->junit.empty()) return "";
  const render::JobCase job{.name = join(options_.command),
                            .state = render::JobState::kError,
                            .message = "forksight did not see the end of the command",
                            .text = ""};
  const fs::path& file = options_.job->junit;
  auto opened = files::open_output(file.string());
  if (!opened) return cannot_write(file, opened.error());
  if (const int error = opened->write(render::render_junit(job)); error != 0)
    report_junit(cannot_write(file, std::strerror(error)));
  return "";
}

void JobReport::tell(const model::Model& model, const std::vector<Finding>& findings,
                     const std::vector<std::string>& unexplained) {
  std::vector<Finding> fresh;
  for (const Finding& finding : findings) {
    if (reported_.insert(finding.fingerprint).second) fresh.push_back(finding);
  }
  std::vector<std::string> sentences;
  for (const std::string& sentence : unexplained) {
    // A sentence begins with "process 123 (app)". Only the text before "(" is compared, because the rest of the
    // sentence contains the duration of the hang, and the duration changes.
    if (reported_.insert(sentence.substr(0, sentence.find('('))).second) sentences.push_back(sentence);
  }
  if (fresh.empty() && sentences.empty()) return;
  const auto is_failure = [](const Finding& finding) {
    return finding.outcome == Outcome::kHang && finding.harm >= Certainty::kLikely;
  };
  const auto failure = std::ranges::find_if(fresh, is_failure);
  has_reported_hang_ = has_reported_hang_ || failure != fresh.end() || !sentences.empty();
  if (first_reason_.empty())
    first_reason_ = failure != fresh.end() ? failure->summary : sentences.empty() ? "" : sentences.front();

  render::TextOptions how;
  how.cwd = find_workspace();
  how.full = options_.full;
  std::string text = render::render_text(model, fresh, how, sentences);
  if (!sentences.empty()) text += render::render_waits(model, find_unexplained_processes(model, findings), how);
  if (const std::string limits = render::render_limits(model.limits, how); !limits.empty()) text += "\n" + limits;
  text_ += text;
  report_error(write(document_, render::render_json(model, findings)));
  has_document_ = true;
  if (has_reported_hang_) write_junit(render::JobState::kFailed, first_reason_);
  add_summary(has_reported_hang_ ? "the job hangs" : "findings", text);
  if (!is_on_github()) return;
  std::error_code ignored;
  put(render::render_annotations(fresh, {find_workspace(), fs::current_path(ignored)}));
  for (const std::string& sentence : sentences) put(render::render_annotation(sentence));
}

void JobReport::tell_waits(const model::Model& model, const std::vector<model::ProcessId>& processes) {
  render::TextOptions how = render::options_for(STDERR_FILENO);
  how.full = options_.full;
  put(render::render_waits(model, processes, how));
  render::TextOptions in_documents;
  in_documents.full = options_.full;
  const std::string text = render::render_waits(model, processes, in_documents);
  text_ += text;
  add_summary("what the processes waited for", text);
}

void JobReport::say(const std::string& sentence) {
  put(render::render_line("forksight: " + sentence, render::options_for(STDERR_FILENO)));
  text_ += render::render_line("forksight: " + sentence);
}

void JobReport::say_failure(const std::string& sentence) {
  say(sentence);
  if (first_reason_.empty()) first_reason_ = sentence;
  add_summary(sentence, "");
  if (is_on_github()) put(render::render_annotation(sentence));
}

void JobReport::fail(const std::string& why) { write_junit(render::JobState::kError, why); }

void JobReport::end(int status, std::chrono::duration<double> time) {
  seconds_ = time.count();
  if (has_document_) say(fmt::format("report in {}", shown_.string()));
  const std::string message =
      first_reason_.empty() ? fmt::format("the command ended with status {}", status) : first_reason_;
  write_junit(status == 0 ? render::JobState::kPassed : render::JobState::kFailed, message);
}

void JobReport::write_junit(render::JobState state, const std::string& message) {
  if (options_.job->junit.empty()) return;
  const render::JobCase job{join(options_.command), seconds_, state, message, text_};
  report_junit(write(options_.job->junit, render::render_junit(job)));
}

void JobReport::report_junit(const std::string& problem) {
  if (problem != junit_problem_) report_error(problem);
  junit_problem_ = problem;
}

void JobReport::report_error(const std::string& problem) {
  if (!problem.empty()) put(render::render_line("forksight: error: " + problem, render::options_for(STDERR_FILENO)));
}

void JobReport::add_summary(const std::string& headline, const std::string& text) {
  const std::string file = read_variable("GITHUB_STEP_SUMMARY");
  if (!file.empty()) report_error(append(file, render::render_step_summary(headline, text)));
}

}  // namespace forksight
