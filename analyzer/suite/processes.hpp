// Finds, describes and ends the descendants of this process. This process is their subreaper, so this process keeps a
// descendant whose parent ends. These functions send signals to no other process.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace forksight::suite {

// Makes this process a subreaper: a descendant whose parent ends becomes a child of this process. False if the kernel
// refuses.
bool become_reaper();

// Returns the pids of all descendants of this process, zombies included.
std::vector<pid_t> find_descendants();
// Returns the pids of the descendants that live.
std::vector<pid_t> find_alive();

// Describes for people where each thread of the descendants is. The description has stacks from gdb if gdb is
// installed, and otherwise what the kernel shows.
std::vector<std::string> describe_stacks(const std::filesystem::path& folder);

// Kills and reaps all descendants. Calls `reaped` with each pid and wait status. Returns true if a living process had
// not been sent SIGKILL before, or if a process does not end.
bool end_descendants(const std::function<void(pid_t, int)>& reaped);

// After this call, SIGTERM does not end this process. Instead, is_stopped() becomes true, and every wait of Program
// ends early.
void end_waits_at_sigterm();
bool is_stopped();

}  // namespace forksight::suite
