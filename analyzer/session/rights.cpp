#include "session/rights.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace forksight {
namespace {

// True if the process has a second thread. A process with a single thread loses nothing at a fork.
bool has_threads(pid_t pid) {
  struct stat status {};
  return ::stat(fmt::format("/proc/{}/task", pid).c_str(), &status) == 0 && status.st_nlink > 3;
}

// True if the process has mapped its trace: it may have made the trace before it changed its user. Also true if the
// mappings of the process cannot be read.
bool has_trace(pid_t pid) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find(".fstrace") != std::string::npos) return true;
  }
  return !maps.eof();  // not at the end of the file: the mappings could not be read
}

}  // namespace

bool RunRights::is_closed_to(uid_t user) const {
  struct stat status {};
  if (user == 0 || ::stat(folder_.c_str(), &status) != 0) return false;
  const mode_t needed = status.st_uid == user ? S_IWUSR : S_IWOTH;
  return (status.st_mode & needed) == 0;
}

std::vector<std::string> RunRights::look(const watch::Supervisor& supervisor) {
  std::vector<std::string> sentences;
  for (const auto& [pid, member] : supervisor.tree().living()) {
    if (member.has_ended) continue;
    struct stat status {};
    // A process's folder in /proc belongs to its effective user.
    if (::stat(fmt::format("/proc/{}", pid).c_str(), &status) != 0 || status.st_uid == ::geteuid()) continue;
    if (told_.contains(member.key) || !is_closed_to(status.st_uid) || !has_threads(pid) || has_trace(pid)) continue;
    told_.insert(member.key);
    sentences.push_back(
        fmt::format("process {} ({}) runs as user {}, who may not write to {}: its forks are not recorded", pid,
                    member.comm, status.st_uid, folder_.string()));
  }
  return sentences;
}

}  // namespace forksight
