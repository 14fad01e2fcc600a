// How many runs stay in the folder of the traces: the oldest are removed. Only folders that forksight made are ever
// removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace forksight {

// nullopt: no bound.
struct KeepBounds {
  std::optional<std::size_t> runs;
  std::optional<std::uint64_t> bytes;  // on disk, for all runs together

  friend bool operator==(const KeepBounds&, const KeepBounds&) = default;
};

// For forksight-out, unless the user names another folder or other bounds.
inline constexpr char kDefaultKeep[] = "20,200M";

// "all", or a number of runs and a size with K, M or G, with a comma between them. The error is one sentence.
Result<KeepBounds> read_keep_bounds(const std::string& text);

struct KeepOptions {
  KeepBounds bounds;
  bool keeps_ranks = false;  // runs of ranks stay: the ranks of one job share a folder, and each is a run of its own
};

// Removes the oldest runs of `root` until the bounds hold, and returns their names. `current` is never removed, but it
// counts.
//  A run is a folder that has the name of a run, belongs to this user, and contains only run.json, outside.json,
//  report.json and traces. It must contain run.json or a trace, and each file must have the schema that forksight
//  writes. Everything else stays and does not count: a folder that contains any other file or a folder, a link, and
//  everything in a `root` that is a link. A run of another machine also stays and does not count. A run that goes on
//  stays, but counts: its `forksight run` has locked the folder, or a process names the folder in its environment.
std::vector<std::string> remove_old_runs(const std::filesystem::path& root, const std::filesystem::path& current,
                                         const KeepOptions& options);

}  // namespace forksight
