// Reads the traces of a run, and examines its processes. A child process does the reading (guard/child.hpp). So if a
// file system does not answer, or a file crashes the reader, the run loses a part of its report, but still returns the
// exit status of CMD.
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

// With these options the traces are read without symbols and names, and no ELF file is opened.
inline const collect::LoadOptions kWithoutNames{.symbolize = false, .progress = {}};

class RunReadings {
 public:
  // Reads all traces and logs of the folder.
  Result<model::Model> load(const std::filesystem::path& folder, const collect::LoadOptions& options);
  // Examines the process `pid` and its descendants as `forksight why` does.
  std::optional<model::Model> look(std::int32_t pid, const inspect::LiveTreeOptions& options);

  // True if the latest reading was not completed.
  bool has_failed() const { return has_failed_; }
  // Returns sentences that say what was not read since the previous call, and why.
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
