// A job is a run with a time limit in a CI system. These functions say when the hangs of a job are reported, and which
// processes belong to the job.
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "proc/proc_fs.hpp"

namespace forksight {

struct JobOptions {
  std::chrono::milliseconds timeout{};
  std::chrono::milliseconds grace{5000};  // the time between SIGTERM and SIGKILL at the limit
  std::filesystem::path junit;            // the JUnit document; "": none is written
};

// Returns how long before its limit a job reports its hangs: a quarter of the limit, but at most half a minute.
std::chrono::milliseconds time_before_limit(std::chrono::milliseconds timeout);

using Processes = std::set<proc::ProcessKey>;

// Returns the living descendants of this process, without `strangers` and their descendants.
std::vector<proc::ProcessKey> list_job(const Processes& strangers);

// After this call, a descendant whose parent ends becomes a child of this process. Returns "" or the reason of the
// failure.
std::string become_reaper();

// True if this process still has a child. A child that has ended, but that nobody has waited for, counts.
bool has_children();

// Names at most eight of these processes: "123 (name), 124 (other), 3 more".
std::string name_processes(const std::vector<proc::ProcessKey>& keys);

}  // namespace forksight
