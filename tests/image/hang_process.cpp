#include "hang_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "proc/proc_fs.hpp"

extern char** environ;

namespace forksight::test {
namespace {

// True if the threads of hang.c are in their system calls. The first thread (in pthread_join) and the locker must be in
// futex. The reader and the handler must be in read. The spinner is in no system call.
bool is_settled(pid_t pid) {
  std::size_t blocked = 0;
  std::size_t reading = 0;
  for (const std::int32_t tid : proc::list_numbers(proc::proc_path(pid, "task")).numbers) {
    const auto call = proc::parse_syscall(proc::read_file(proc::task_path(pid, tid, "syscall")).text);
    if (!call || !call->in_syscall) continue;
    if (call->number == SYS_futex) ++blocked;
    if (call->number == SYS_read) ++reading;
  }
  return blocked == 2 && reading == 2;
}

}  // namespace

HangProcess::HangProcess(const std::string& program) {
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  std::string name = program;
  char* const arguments[] = {name.data(), nullptr};
  const int failed = posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(output[1]);
  char byte = 0;
  const bool is_ready = failed == 0 && read(output[0], &byte, 1) == 1;
  close(output[0]);
  if (!is_ready) throw std::runtime_error(program + " did not start");
  while (!is_settled(pid_)) std::this_thread::yield();
}

HangProcess::~HangProcess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

const image::Thread& thread_named(const image::Image& image, const std::string& name) {
  for (const image::Thread& thread : image.threads) {
    if (thread.name == name) return thread;
  }
  throw std::runtime_error("no thread " + name);
}

std::string names_of(const model::Stack& stack) {
  std::string names;
  for (const model::Frame& frame : stack.frames) {
    if (frame.inlined) continue;
    if (!names.empty()) names += ' ';
    names += frame.function.empty() ? "?" : frame.function;
  }
  return stack.cut ? names + " ..." : names;
}

}  // namespace forksight::test
