#include "watch/tree.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::watch {
namespace {

// Searches for new processes take at most 1/kWalkShare of the time. So a big tree is searched less often than its known
// processes are looked at.
constexpr int kWalkShare = 200;
// To note a new process takes most of the time of a search, but it is done only once for each process. So a job that
// has just made thousands of processes is soon searched again.
constexpr int kNotingShare = 10;
// A process that has ended changes no more, until its parent has waited for it. So such processes are read less often.
// These readings take at most 1/kEndedShare of the time. Between two of them, the kernel does not give out all pids, so
// it does not use the pid of such a process again.
constexpr int kEndedShare = 50;
// In a container /proc/loadavg may be virtualised and out of date. So forksight searches after this time even if the
// file has not changed.
constexpr std::chrono::seconds kLongestTrust{2};

// Returns the last field of /proc/loadavg: the pid that the kernel gave out last. While this pid stays the same, no
// process and no thread is created.
std::string read_newest_pid() {
  std::string text = proc::read_file("/proc/loadavg").text;
  const std::size_t blank = text.rfind(' ');
  return blank == std::string::npos ? std::string() : text.substr(blank + 1);
}

}  // namespace

Tree::Tree(std::int32_t root) : root_(root) { take(root); }

bool Tree::take(std::int32_t pid, bool is_outsider) {
  const auto known = living_.find(pid);
  if (known != living_.end() && !known->second.has_ended) return false;
  auto stat = proc::read_stat(pid);
  if (!stat) return false;
  if (known != living_.end()) {
    // The parent may have waited for the process that ended, and the kernel may have used its pid again.
    if (known->second.key.start_ticks == stat->start_ticks) return false;
    living_.erase(known);
  }
  Member member;
  member.key = {pid, stat->start_ticks};
  member.ppid = stat->ppid;
  member.state = stat->state;
  member.has_ended = proc::is_zombie(*stat);
  member.is_outsider = is_outsider;
  member.comm = std::move(stat->comm);
  const bool has_ended = member.has_ended;
  living_.emplace(pid, std::move(member));
  // /proc shows neither the program nor the arguments of a process that has ended.
  if (!has_ended) refresh_identity(pid);
  ++seen_;
  if (!is_outsider) first_start_ = std::min(first_start_, stat->start_ticks);
  return true;
}

bool Tree::adopt(const proc::ProcessKey& key) {
  if (!proc::is_same_process(key)) return false;
  take(key.pid);
  return true;
}

void Tree::adopt_outsider(const proc::ProcessKey& key) {
  if (proc::is_same_process(key)) take(key.pid, true);
}

void Tree::refresh_identity(std::int32_t pid) {
  const auto member = living_.find(pid);
  if (member == living_.end()) return;
  if (std::string exe = proc::read_exe(pid); !exe.empty()) member->second.exe = std::move(exe);
  if (auto cmdline = proc::read_cmdline(pid); !cmdline.empty()) member->second.cmdline = std::move(cmdline);
}

void Tree::refresh(const RestingSince& resting_since) {
  const auto start = std::chrono::steady_clock::now();
  const bool reads_ended = start >= next_reading_of_ended_;
  for (auto entry = living_.begin(); entry != living_.end();) {
    Member& member = entry->second;
    if (member.has_ended && !reads_ended) {
      ++entry;
      continue;
    }
    auto stat = proc::read_stat(member.key.pid);
    if (!stat || stat->start_ticks != member.key.start_ticks) {
      entry = living_.erase(entry);
      continue;
    }
    member.ppid = stat->ppid;
    member.state = stat->state;
    member.has_ended = proc::is_zombie(*stat);
    if (member.comm != stat->comm) {
      member.comm = std::move(stat->comm);
      refresh_identity(member.key.pid);
    }
    ++entry;
  }
  if (reads_ended) {
    const auto end = std::chrono::steady_clock::now();
    next_reading_of_ended_ = end + (end - start) * kEndedShare;
  }
  find_new_processes(resting_since);
}

void Tree::find_new_processes(const RestingSince& resting_since) {
  const auto start = std::chrono::steady_clock::now();
  if (start < next_walk_) return;
  std::string newest = read_newest_pid();
  const bool has_grown = newest.empty() || newest != last_loadavg_;
  if (!has_grown && start < last_walk_ + kLongestTrust) return;
  last_loadavg_ = std::move(newest);
  if (has_grown) ++forks_;
  std::vector<std::int32_t> open;
  for (const auto& [pid, member] : living_) {
    const bool has_run = !resting_since || resting_since(pid) >= last_walk_;
    if (has_run && !member.has_ended) open.push_back(pid);
  }
  last_walk_ = start;
  std::chrono::steady_clock::duration noting{};
  while (!open.empty()) {
    const std::int32_t pid = open.back();
    open.pop_back();
    const std::vector<std::int32_t> children = proc::read_children(pid);
    const bool is_outsider = living_.at(pid).is_outsider;
    const auto listed = std::chrono::steady_clock::now();
    for (const std::int32_t child : children) {
      if (take(child, is_outsider) && !living_.at(child).has_ended) open.push_back(child);
    }
    noting += std::chrono::steady_clock::now() - listed;
  }
  const auto end = std::chrono::steady_clock::now();
  next_walk_ = end + (end - start - noting) * kWalkShare + noting * kNotingShare;
}

std::vector<proc::ProcessKey> Tree::descendants() const {
  std::set<std::int32_t> inside;
  std::vector<proc::ProcessKey> found;
  // A parent may have a greater pid than its child, because pids wrap around. So the search is repeated until it adds
  // no process.
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [pid, member] : living_) {
      if (inside.contains(pid) || (pid != root_ && !inside.contains(member.ppid))) continue;
      inside.insert(pid);
      found.push_back(member.key);
      grew = true;
    }
  }
  return found;
}

std::multimap<std::int32_t, std::int32_t> find_traced(const Tree& tree) {
  std::multimap<std::int32_t, std::int32_t> found;
  for (const auto& [pid, member] : tree.living()) {
    if (member.has_ended) continue;
    const auto status = proc::parse_status(proc::read_file(proc::proc_path(pid, "status")).text);
    if (status && status->tracer > 0) found.emplace(status->tracer, pid);
  }
  return found;
}

}  // namespace forksight::watch
