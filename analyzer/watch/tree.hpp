// The processes of one run: CMD, everything that descends from it, and what was given to another parent on the way.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  std::string comm;
  std::string exe;
  std::vector<std::string> cmdline;
};

class Tree {
 public:
  explicit Tree(std::int32_t root);

  // Since when no thread of a process has run; the end of time if one may be running now.
  using RestingSince = std::function<std::chrono::steady_clock::time_point(std::int32_t pid)>;

  // Drops those that ended, finds new ones. A read a process, and one more a thread where new processes may exist:
  // what has not run since the latest walk has not forked.
  void refresh(const RestingSince& resting_since = {});

  // Takes a process in that the walk did not meet. False if it has ended.
  bool adopt(const proc::ProcessKey& key);

  // Program and arguments as they are now: an exec changes both.
  void refresh_identity(std::int32_t pid);

  const std::map<std::int32_t, Member>& living() const { return living_; }
  std::size_t seen() const { return seen_; }    // processes met so far
  std::size_t forks() const { return forks_; }  // so often the machine was seen to have made a process or a thread
  // The living that descend from the root now, by their parents.
  std::vector<proc::ProcessKey> descendants() const;

 private:
  bool take(std::int32_t pid);
  void discover(const RestingSince& resting_since);

  std::int32_t root_;
  std::map<std::int32_t, Member> living_;
  std::size_t seen_ = 0;
  std::size_t forks_ = 0;
  std::string last_loadavg_;
  std::chrono::steady_clock::time_point last_walk_{};
  std::chrono::steady_clock::time_point next_walk_{};
};

}  // namespace forksight::watch
