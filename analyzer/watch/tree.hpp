// Keeps the processes of one run: the root process and all of its descendants. A process stays in the tree if its
// parent ends and the kernel gives the process another parent. A zombie (a process that has ended, and whose parent has
// not waited for it) stays, too. A job may have thousands of zombies, so they are read less often than other processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "proc/proc_fs.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

struct Member {
  proc::ProcessKey key;
  std::int32_t ppid = 0;
  char state = '?';
  // All threads have ended. This entry may be out of date: the parent may have waited for the process meanwhile, and
  // the pid may be in use again.
  bool has_ended = false;
  // Not part of the run, but it may end waits of the run: for example the shell that has started the run, or another
  // child of that shell.
  bool is_outsider = false;
  std::string comm;
  std::string exe;
  std::vector<std::string> cmdline;
};

class Tree {
 public:
  explicit Tree(std::int32_t root);

  // Returns the time since which no thread of a process has run. Returns the maximum if a thread may be running now.
  using RestingSince = std::function<std::chrono::steady_clock::time_point(std::int32_t pid)>;

  // Drops the processes that ended and finds new ones. This costs one read for each process, and one more read for each
  // thread of the processes that may have forked. Those are the processes that have run since the latest search.
  void refresh(const RestingSince& resting_since = {});

  // Adds a process that the search for new processes did not find. False if the process has ended.
  bool adopt(const proc::ProcessKey& key);
  // Adds an outsider.
  void adopt_outsider(const proc::ProcessKey& key);

  // Reads program and arguments again, because an exec changes both.
  void refresh_identity(std::int32_t pid);

  const std::map<std::int32_t, Member>& living() const { return living_; }
  std::size_t seen() const { return seen_; }  // processes found so far
  // The start time of the oldest process found so far, in clock ticks since boot. Outsiders do not count.
  std::uint64_t first_start() const { return first_start_; }
  // Counts the searches for new processes. A search is not counted if the machine had created no process and no thread
  // since the previous search.
  std::size_t forks() const { return forks_; }
  // The living descendants of the root, by their present parents.
  std::vector<proc::ProcessKey> descendants() const;

 private:
  // Adds a process. False if it was known before, or is gone.
  bool take(std::int32_t pid, bool is_outsider = false);
  void find_new_processes(const RestingSince& resting_since);

  std::int32_t root_;
  std::map<std::int32_t, Member> living_;
  std::size_t seen_ = 0;
  std::uint64_t first_start_ = std::numeric_limits<std::uint64_t>::max();
  std::size_t forks_ = 0;
  std::string last_loadavg_;
  std::chrono::steady_clock::time_point last_walk_{};
  std::chrono::steady_clock::time_point next_walk_{};
  std::chrono::steady_clock::time_point next_reading_of_ended_{};
};

// Returns the processes of the tree that are traced, by the pid of the thread that traces them.
std::multimap<std::int32_t, std::int32_t> find_traced(const Tree& tree);

}  // namespace forksight::watch
