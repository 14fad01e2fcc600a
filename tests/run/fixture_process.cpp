#include "fixture_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace forksight::test {

FixtureProcess::FixtureProcess(const std::vector<std::string>& command, bool capture, const std::string& folder) {
  // If the parent of a descendant ends, the descendant becomes a child of this process. Then this process can wait for
  // the descendant.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  if (capture) error_ = ::memfd_create("stderr", MFD_CLOEXEC);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(125);
    ::dup2(ends[1], STDOUT_FILENO);
    if (error_ >= 0) {
      ::dup2(error_, STDERR_FILENO);
      ::fcntl(STDERR_FILENO, F_SETFL, O_APPEND);
    }
    ::execvp(arguments.front(), arguments.data());
    ::_exit(126);
  }
  ::setpgid(pid_, pid_);
  ::close(ends[1]);
  output_ = ends[0];
}

FixtureProcess::~FixtureProcess() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    wait_group_end();
  }
  if (output_ >= 0) ::close(output_);
  if (error_ >= 0) ::close(error_);
}

// Processes of the group whose parent has ended are children of this process, too. waitpid() fails with ECHILD when no
// child of the group is left.
void FixtureProcess::wait_group_end() {
  for (;;) {
    const pid_t ended = ::waitpid(-pid_, nullptr, 0);
    if (ended < 0 && errno != EINTR) return;
  }
}

bool FixtureProcess::wait_ready() {
  char byte = 0;
  for (;;) {
    const ssize_t got = ::read(output_, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    return got == 1;
  }
}

int FixtureProcess::wait_end() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) {
      ADD_FAILURE() << "cannot wait for " << pid_;
      return -1;
    }
  }
  return status;
}

std::string FixtureProcess::stdout_text() {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(output_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string FixtureProcess::stderr_text() const {
  std::string text;
  char buffer[4096];
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(error_, buffer, sizeof buffer, at);
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    at += got;
  }
}

bool FixtureProcess::wait_stderr(const std::string& text) {
  for (;;) {
    if (stderr_text().find(text) != std::string::npos) return true;
    siginfo_t info{};
    const bool ended =
        ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
    if (ended) return stderr_text().find(text) != std::string::npos;
    ::poll(nullptr, 0, 10);  // polls again after 10 ms; no result depends on this time
  }
}

}  // namespace forksight::test
