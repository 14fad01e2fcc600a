// Builds the model from the folders of one or more runs: from all trace files in them, and from their run logs
// (run.json).
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

#include "files/reader.hpp"
#include "model/model.hpp"
#include "result.hpp"

namespace forksight::collect {

struct LoadOptions {
  // False: stacks and names stay empty, and no ELF file is opened. Then loading is cheap enough to poll a running
  // program.
  bool symbolize = true;
  // Called before each trace is read, with the number of traces that are done and the total. May be empty.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Folders are searched recursively. A path may also name a single trace file. If at least one trace or run log can be
// read, each unreadable file becomes a sentence in Model::limits. It is an error if a path does not exist, if a folder
// has no trace and no run log, or if no file can be read. A trace that is still being written is read up to its last
// committed record.
Result<model::Model> load_run(const files::Reader& reader, const std::vector<std::filesystem::path>& paths,
                              const LoadOptions& options = {});

}  // namespace forksight::collect
