// The descendants of this process, which is their subreaper: so none of them is lost when its parent ends. No other
// process is ever signalled.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace forksight::suite {

// Orphans of our descendants become our children. False if the kernel refuses.
bool become_reaper();

// The pids of all descendants of this process, zombies included; and of those that live.
std::vector<pid_t> find_descendants();
std::vector<pid_t> find_alive();

// Describes for people where each thread of the descendants is: by stacks from gdb if it is installed, else by what the
// kernel shows.
std::vector<std::string> describe_stacks(const std::filesystem::path& folder);

// Kills and reaps all descendants; calls `reaped` with each pid and wait status. True if a process lived that nobody
// had killed yet.
bool end_descendants(const std::function<void(pid_t, int)>& reaped);

// From now on SIGTERM asks this process to stop: every wait of Program then ends early.
void end_waits_at_sigterm();
bool is_stopped();

}  // namespace forksight::suite
