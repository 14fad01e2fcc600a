// How many runs stay in the folder of the traces: the oldest give way. Only what forksight made is ever removed.
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
  std::optional<std::uint64_t> bytes;  // on the disk, of all runs together

  friend bool operator==(const KeepBounds&, const KeepBounds&) = default;
};

// Of forksight-out, where nobody asked for another folder or for other bounds.
inline constexpr char kDefaultKeep[] = "20,200M";

// "all", or with a comma between them: a number of runs, and a size with K, M or G. The error is one sentence.
Result<KeepBounds> read_keep_bounds(const std::string& text);

struct KeepOptions {
  KeepBounds bounds;
  bool keeps_ranks = false;  // ranks of one job share a folder, each a run of its own: these stay
};

// Removes the oldest runs of `root` until the bounds hold, and returns their names. `current` stays, and counts.
//
// A run is a folder that has the name of one and belongs to this user, in which there is nothing but run.json,
// outside.json and traces, at least one of the first and the last, each of the schema that forksight writes. Any other
// thing stays and does not count: what has a foreign file in it, or a folder; a link, and a `root` that is one. So does
// a run of another machine, and one that goes on: its `forksight run` has it locked, or a process names it in its
// environment.
std::vector<std::string> remove_old_runs(const std::filesystem::path& root, const std::filesystem::path& current,
                                         const KeepOptions& options);

}  // namespace forksight
