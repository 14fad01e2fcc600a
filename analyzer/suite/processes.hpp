// The descendants of this process, which is their subreaper: nothing else is ever signalled, and nothing of them is
// lost.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace forksight::suite {

// Orphans of what we start become our children. False where the kernel says no.
bool become_reaper();

// Pids of everything below this process, zombies included; those alone that live.
std::vector<pid_t> find_descendants();
std::vector<pid_t> find_alive();

// Where every thread of them is, for a person: by gdb if it is there, else what the kernel tells.
std::vector<std::string> describe_stacks(const std::filesystem::path& folder);

// Kills and reaps all descendants; `reaped` is told of each and its wait status. True if something lived that nobody
// had killed yet.
bool end_descendants(const std::function<void(pid_t, int)>& reaped);

// From now on SIGTERM asks this process to stop: every wait of Program ends early then.
void heed_stop();
bool is_stopped();

}  // namespace forksight::suite
