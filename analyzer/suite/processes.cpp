#include "suite/processes.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>

#include "proc/proc_fs.hpp"
#include "suite/program.hpp"

namespace forksight::suite {
namespace {

using namespace std::chrono_literals;
using proc::read_file;
using proc::task_path;

volatile std::sig_atomic_t g_is_stopped = 0;

void note_stop(int) { g_is_stopped = 1; }

std::vector<std::string> stacks_by_gdb(pid_t pid, const std::filesystem::path& folder) {
  const Captured said =
      capture({"gdb", "-nx", "-batch", "-p", std::to_string(pid), "-ex", "thread apply all bt"}, folder, "gdb", 20s);
  std::vector<std::string> lines;
  std::istringstream text(said.out);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("Thread") || line.starts_with("#")) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> stacks_by_kernel(pid_t pid) {
  std::vector<std::string> lines;
  for (const std::int32_t tid : proc::list_numbers(proc::proc_path(pid, "task")).numbers) {
    std::string call = read_file(task_path(pid, tid, "syscall")).text;
    if (!call.empty() && call.back() == '\n') call.pop_back();
    lines.push_back(
        fmt::format("thread {}: syscall {}, in {}", tid, call, read_file(task_path(pid, tid, "wchan")).text));
  }
  return lines;
}

// True if SIGKILL has been sent to the process and has not taken effect yet. On a busy machine that can take a while,
// because the process needs a processor to end.
bool is_being_killed(pid_t pid) {
  const auto status = proc::parse_status(read_file(proc::proc_path(pid, "status")).text);
  return status && (((status->pending | status->shared_pending) >> (SIGKILL - 1)) & 1U) != 0;
}

}  // namespace

bool become_reaper() { return ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0; }

void end_waits_at_sigterm() {
  struct sigaction action = {};
  action.sa_handler = note_stop;
  ::sigaction(SIGTERM, &action, nullptr);
}

bool is_stopped() { return g_is_stopped != 0; }

std::vector<pid_t> find_descendants() {
  std::multimap<pid_t, pid_t> children;
  for (const std::int32_t pid : proc::list_numbers("/proc").numbers) {
    if (const auto stat = proc::read_stat(pid)) children.emplace(stat->ppid, pid);
  }
  std::vector<pid_t> found;
  std::vector<pid_t> frontier = {::getpid()};
  while (!frontier.empty()) {
    const auto [first, last] = children.equal_range(frontier.back());
    frontier.pop_back();
    for (auto one = first; one != last; ++one) {
      found.push_back(one->second);
      frontier.push_back(one->second);
    }
  }
  return found;
}

std::vector<pid_t> find_alive() {
  std::vector<pid_t> alive = find_descendants();
  std::erase_if(alive, proc::has_ended);
  return alive;
}

std::vector<std::string> describe_stacks(const std::filesystem::path& folder) {
  const bool has_gdb = !find_in_path("gdb").empty();
  std::vector<std::string> lines;
  for (const pid_t pid : find_descendants()) {
    lines.push_back(fmt::format("--- process {}: {}", pid, fmt::join(proc::read_cmdline(pid), " ")));
    const auto more = has_gdb ? stacks_by_gdb(pid, folder) : stacks_by_kernel(pid);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

bool end_descendants(const std::function<void(pid_t, int)>& reaped) {
  bool left = false;
  // SIGKILL does not end a process that sleeps in the kernel for ever, so the loop gives up at some time
  const Clock::time_point give_up = Clock::now() + 30s;
  for (;;) {
    for (const pid_t pid : find_alive()) {
      left = left || !is_being_killed(pid);
      ::kill(pid, SIGKILL);
    }
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return left;
      if (pid == 0) break;
      reaped(pid, status);
    }
    if (Clock::now() >= give_up) return true;
    pause_for(20ms);
  }
}

}  // namespace forksight::suite
