#include "session/job.hpp"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "proc/own_process.hpp"

namespace forksight {

std::chrono::milliseconds time_before_limit(std::chrono::milliseconds timeout) {
  return std::min<std::chrono::milliseconds>(timeout / 4, std::chrono::seconds(30));
}

std::vector<proc::ProcessKey> list_job(const Processes& strangers) {
  std::vector<proc::ProcessKey> job;
  std::vector<std::int32_t> parents{::getpid()};
  while (!parents.empty()) {
    const std::int32_t parent = parents.back();
    parents.pop_back();
    for (const std::int32_t pid : proc::read_children(parent)) {
      const auto stat = proc::read_stat(pid);
      if (!stat || strangers.contains({pid, stat->start_ticks}) || proc::is_own_process(pid)) continue;
      parents.push_back(pid);  // a process whose first thread has ended may still have other threads and children
      if (!proc::has_ended(pid)) job.push_back({pid, stat->start_ticks});
    }
  }
  return job;
}

std::string become_reaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0) return "";
  return fmt::format("processes that CMD leaves behind cannot become children of forksight: {}", std::strerror(errno));
}

bool has_children() {
  siginfo_t unused{};
  return ::waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

std::string name_processes(const std::vector<proc::ProcessKey>& keys) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t at = 0; at < keys.size() && at < kMost; ++at) {
    const auto stat = proc::read_stat(keys[at].pid);
    text += fmt::format("{}{}", at == 0 ? "" : ", ", keys[at].pid);
    if (stat && stat->start_ticks == keys[at].start_ticks) text += fmt::format(" ({})", stat->comm);
  }
  if (keys.size() > kMost) text += fmt::format(", {} more", keys.size() - kMost);
  return text;
}

}  // namespace forksight
