// From the folders of one or many runs to the model: every trace file below them, and run.json where there is one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

#include "model/model.hpp"
#include "result.hpp"

namespace forksight::collect {

struct LoadOptions {
  // False: stacks and names stay empty and no ELF file is opened. Cheap enough to poll a running program with.
  bool symbolize = true;
  // Called before each trace is read: how many are done, of how many. May be empty.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Folders are searched recursively; a path may also name a single trace file. Traces that cannot be read become
// limits as long as one can; the error is for evidence that is not there, or not readable at all. A trace that its
// writers are still appending to is read up to its last committed record.
Result<model::Model> load_run(const std::vector<std::filesystem::path>& paths, const LoadOptions& options = {});

}  // namespace forksight::collect
