#include "python_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "proc/proc_fs.hpp"
#include "proc/proc_text.hpp"

namespace forksight::test {
namespace {

struct Started {
  pid_t pid;
  int input;
  int output;
};

Started start(const std::vector<std::string>& command) {
  std::array<int, 2> input{};
  std::array<int, 2> output{};
  if (pipe(input.data()) != 0 || pipe(output.data()) != 0) throw std::runtime_error("pipe failed");
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(input[0], 0);
    dup2(output[1], 1);
    for (const int fd : {input[0], input[1], output[0], output[1]}) close(fd);
    execv(words.front(), words.data());
    _exit(127);
  }
  close(input[0]);
  close(output[1]);
  return {pid, input[1], output[0]};
}

// Blocks until the first thread of the process waits for the end of its input.
void wait_until_it_reads(pid_t pid) {
  for (;;) {
    const auto stat = proc::read_stat(pid);
    const auto call = proc::parse_syscall(proc::read_file(proc::proc_path(pid, "syscall")).text);
    if (!stat || stat->state == 'Z') return;
    if (stat->state == 'S' && call && call->in_syscall && call->number == SYS_read && call->args[0] == 0) return;
    std::this_thread::yield();
  }
}

}  // namespace

std::vector<std::string> find_interpreters(int minor) {
  const std::string name = "python3." + std::to_string(minor);
  std::vector<std::filesystem::path> programs{"/usr/bin/" + name, "/usr/local/bin/" + name};
  const char* const home = std::getenv("HOME");
  std::error_code error;
  const std::filesystem::path versions = std::string(home == nullptr ? "" : home) + "/.pyenv/versions";
  for (const auto& entry : std::filesystem::directory_iterator(versions, error)) {
    programs.push_back(entry.path() / "bin" / name);
  }
  std::erase_if(programs, [](const auto& program) { return access(program.c_str(), X_OK) != 0; });
  return {programs.begin(), programs.end()};
}

std::string output_of(const std::vector<std::string>& command) {
  const Started started = start(command);
  close(started.input);
  std::string text;
  std::array<char, 65536> buffer{};
  for (ssize_t size; (size = read(started.output, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(size));
  close(started.output);
  int status = 0;
  waitpid(started.pid, &status, 0);
  if (status != 0) throw std::runtime_error(command.front() + " failed");
  return text;
}

PythonProcess::PythonProcess(const std::string& interpreter, const std::string& mode) {
  const Started started = start({interpreter, "-E", "-s", "-B", PYTHON_SCENE, mode});
  pid_ = started.pid;
  input_ = started.input;
  output_ = started.output;
  read_line();
}

void PythonProcess::read_line() {
  std::string line;
  std::array<char, 65536> buffer{};
  while (!line.ends_with('\n')) {
    const ssize_t size = read(output_, buffer.data(), buffer.size());
    if (size <= 0) return;  // the script has failed, and has printed an error
    line.append(buffer.data(), static_cast<std::size_t>(size));
  }
  const auto told = nlohmann::json::parse(line);
  told_pid_ = told["pid"];
  for (const auto& thread : told["threads"]) {
    ToldThread& entry = told_.emplace_back();
    entry.name = thread["name"];
    entry.pointer = thread["id"];
    entry.tid = thread["tid"];
    for (const auto& frame : thread["frames"]) entry.frames.push_back({frame[0], frame[1], frame[2]});
  }
  wait_until_it_reads(told_pid_);
}

PythonProcess::~PythonProcess() {
  close(input_);
  close(output_);
  waitpid(pid_, nullptr, 0);
}

}  // namespace forksight::test
