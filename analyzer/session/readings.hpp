// What a run reads of its processes: their traces, and the processes themselves. A child process does the reading
// (guard/child.hpp), so a file system that does not answer, or a file that crashes the reader, costs a run a part of
// its report and not the exit status of CMD.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/load.hpp"
#include "inspect/live_tree.hpp"
#include "model/model.hpp"
#include "result.hpp"

namespace forksight {

// The traces are read without symbols and names, and no ELF file is opened.
inline const collect::LoadOptions kWithoutNames{.symbolize = false, .progress = {}};

class RunReadings {
 public:
  // All traces and logs of the folder.
  Result<model::Model> load(const std::filesystem::path& folder, const collect::LoadOptions& options);
  // The tree of this process as `forksight why` sees it.
  std::optional<model::Model> look(std::int32_t pid, const inspect::LiveTreeOptions& options);

  // True if the latest reading was not done to its end.
  bool has_failed() const { return has_failed_; }
  // Sentences that were not taken before: what was not read, and why.
  std::vector<std::string> take_failures();

 private:
  Result<model::Model> read(const char* what, bool needs_ancestor,
                            const std::function<Result<model::Model>(const files::Reader&)>& work);
  void note(const std::string& sentence);

  bool has_failed_ = false;
  std::set<std::string> said_;
  std::vector<std::string> failures_;
};

}  // namespace forksight
