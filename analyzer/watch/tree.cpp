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

bool Tree::take(std::int32_t pid) {
  if (living_.contains(pid)) return false;
  auto stat = proc::read_stat(pid);
  if (!stat) return false;
  Member member;
  member.key = {pid, stat->start_ticks};
  member.ppid = stat->ppid;
  member.state = stat->state;
  member.comm = std::move(stat->comm);
  living_.emplace(pid, std::move(member));
  refresh_identity(pid);
  ++seen_;
  first_start_ = std::min(first_start_, stat->start_ticks);
  return true;
}

bool Tree::adopt(const proc::ProcessKey& key) {
  if (!proc::is_same_process(key)) return false;
  take(key.pid);
  return true;
}

void Tree::refresh_identity(std::int32_t pid) {
  const auto member = living_.find(pid);
  if (member == living_.end()) return;
  if (std::string exe = proc::read_exe(pid); !exe.empty()) member->second.exe = std::move(exe);
  if (auto cmdline = proc::read_cmdline(pid); !cmdline.empty()) member->second.cmdline = std::move(cmdline);
}

void Tree::refresh(const RestingSince& resting_since) {
  for (auto entry = living_.begin(); entry != living_.end();) {
    Member& member = entry->second;
    auto stat = proc::read_stat(member.key.pid);
    if (!stat || stat->start_ticks != member.key.start_ticks) {
      entry = living_.erase(entry);
      continue;
    }
    member.ppid = stat->ppid;
    member.state = stat->state;
    if (member.comm != stat->comm) {
      member.comm = std::move(stat->comm);
      refresh_identity(member.key.pid);
    }
    ++entry;
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
    if (!resting_since || resting_since(pid) >= last_walk_) open.push_back(pid);
  }
  last_walk_ = start;
  while (!open.empty()) {
    const std::int32_t pid = open.back();
    open.pop_back();
    for (const std::int32_t child : proc::read_children(pid)) {
      if (take(child)) open.push_back(child);
    }
  }
  const auto end = std::chrono::steady_clock::now();
  next_walk_ = end + (end - start) * kWalkShare;
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
    const auto status = proc::parse_status(proc::read_file(proc::proc_path(pid, "status")).text);
    if (status && status->tracer > 0) found.emplace(status->tracer, pid);
  }
  return found;
}

}  // namespace forksight::watch
