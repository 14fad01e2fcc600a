#include "proc/launch.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace forksight::proc {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> build_environment(const Environment& overrides) {
  std::vector<std::string> variables;
  std::vector<bool> placed(overrides.size(), false);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const std::string_view name = variable.substr(0, variable.find('='));
    bool is_override = false;
    for (std::size_t index = 0; index < overrides.size(); ++index) {
      if (overrides[index].first != name) continue;
      is_override = true;
      if (!placed[index]) variables.push_back(fmt::format("{}={}", name, overrides[index].second));
      placed[index] = true;
    }
    if (!is_override) variables.emplace_back(variable);
  }
  for (std::size_t index = 0; index < overrides.size(); ++index) {
    if (!placed[index]) variables.push_back(fmt::format("{}={}", overrides[index].first, overrides[index].second));
  }
  return variables;
}

std::vector<char*> to_pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Reads the errno that the child sent; 0 if the exec closed the pipe.
int wait_for_exec(int fd) {
  int error = 0;
  for (;;) {
    const ssize_t got = ::read(fd, &error, sizeof error);
    if (got < 0 && errno == EINTR) continue;
    return got == static_cast<ssize_t>(sizeof error) ? error : 0;
  }
}

Launch explain(const std::string& name, int error) {
  Launch failed;
  const fs::path program = resolve_program(name);
  const bool is_path = name.find('/') != std::string::npos;
  // execvpe() fails with EACCES if a folder of PATH may not be searched, even if no other folder has the program.
  if (program.empty() && (error == ENOENT || (error == EACCES && !is_path))) {
    failed.exit_code = kNotFound;
    failed.message = fmt::format("{}: {}", name, is_path ? "no such file" : "command not found");
    return failed;
  }
  failed.exit_code = error == ENOTDIR ? kNotFound : kNotExecutable;
  failed.message = fmt::format("{}: cannot be run: {}", name, std::strerror(error));
  if (error == ENOENT) failed.message = fmt::format("{}: cannot be run: its interpreter or loader is missing", name);
  return failed;
}

}  // namespace

Launch launch(const std::vector<std::string>& command, const Environment& overrides, const SignalState& signals,
              OutputPlace output) {
  Launch result;
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = build_environment(overrides);
  const std::vector<char*> argument_pointers = to_pointers(arguments);
  const std::vector<char*> variable_pointers = to_pointers(variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    result.exit_code = kNotExecutable;
    result.message = fmt::format("{}: cannot be run: {}", command.front(), std::strerror(errno));
    return result;
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (signals.ignores_child) ::signal(SIGCHLD, SIG_IGN);
    ::sigprocmask(SIG_SETMASK, &signals.mask, nullptr);
    if (output.fd >= 0) ::dup2(output.fd, STDOUT_FILENO);
    ::execvpe(argument_pointers.front(), argument_pointers.data(), variable_pointers.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t sent = ::write(ends[1], &error, sizeof error);
    ::_exit(kNotFound);
  }
  const int fork_error = errno;
  ::close(ends[1]);
  const int error = pid < 0 ? fork_error : wait_for_exec(ends[0]);
  ::close(ends[0]);
  if (error == 0) {
    result.pid = pid;
    return result;
  }
  if (pid > 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return explain(command.front(), error);
}

fs::path resolve_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), F_OK) == 0 ? fs::path(name) : fs::path();
  const char* variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "/bin:/usr/bin";
  fs::path found;
  for (std::size_t start = 0; start <= path.size();) {
    std::size_t end = path.find(':', start);
    if (end == std::string::npos) end = path.size();
    const std::string folder = path.substr(start, end - start);
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    if (found.empty() && ::access(candidate.c_str(), F_OK) == 0) found = candidate;
    start = end + 1;
  }
  return found;
}

}  // namespace forksight::proc
