// A run with a time limit, as one job of a CI system: when its hangs are told, and which processes belong to it.
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
  std::chrono::milliseconds grace{5000};  // between SIGTERM and SIGKILL
  std::filesystem::path junit;            // "": no such file is written
};

// So long before the limit the hangs are told: a quarter of the limit, and half a minute at most.
std::chrono::milliseconds lead_time(std::chrono::milliseconds timeout);

using Processes = std::set<proc::ProcessKey>;

// All that descend from this process now, without those that have ended, and without `strangers` and what descends from
// them.
std::vector<proc::ProcessKey> list_job(const Processes& strangers);

// From now on, a descendant that loses its parent becomes a child of this process. "" or why not.
std::string adopt_orphans();

// This process has a child left, be it one that has ended and was not waited for.
bool has_children();

// "123 (name), 124 (other), 3 more".
std::string name_processes(const std::vector<proc::ProcessKey>& keys);

}  // namespace forksight
