// Limits the number and the size of the runs that stay in the folder of the traces: the oldest runs are removed. Only
// folders that forksight made are removed.
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
  std::optional<std::uint64_t> bytes;  // the size on disk of all runs together

  friend bool operator==(const KeepBounds&, const KeepBounds&) = default;
};

// The bounds for forksight-out if the user names neither another folder nor other bounds.
inline constexpr char kDefaultKeep[] = "20,200M";

// Reads "all", a number of runs, a size with K, M or G, or a number and a size with a comma between them. The error is
// one sentence.
Result<KeepBounds> read_keep_bounds(const std::string& text);

struct KeepOptions {
  KeepBounds bounds;
  bool keeps_ranks = false;  // keep the runs of ranks: all ranks of one job make their runs in the same folder
};

// Removes the oldest runs of `root` until the bounds hold, and returns their names. The run `current` counts, but is
// never removed.
//  A run is a folder that has the name of a run, belongs to this user, and contains only run.json, outside.json,
//  report.json and traces. The folder must contain run.json or a trace, and each file must have the schema that
//  forksight writes. Everything else stays and does not count: a link, a folder that contains another folder or any
//  other file, and everything in a `root` that is a link. A run of another machine also stays and does not count. A run
//  that goes on stays, but counts. A run goes on if its `forksight run` has locked the folder, or if a process names
//  the folder in its environment.
std::vector<std::string> remove_old_runs(const std::filesystem::path& root, const std::filesystem::path& current,
                                         const KeepOptions& options);

}  // namespace forksight
