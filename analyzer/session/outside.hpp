// What the traces of a run do not explain is examined from outside, as `forksight why` does it: processes that were
// started without the shim, statically linked programs, locks that no hook sees.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "session/outside_file.hpp"
#include "watch/evidence.hpp"

namespace forksight {

class OutsideFindings {
 public:
  // `seen` are the processes of the run as the inspector saw them. Keeps its findings about processes that `findings`
  // of `model` leave unexplained or explain by a guess. Findings stay, because the process may have ended when the run
  // ends.
  void keep(const model::Model& seen, const model::Model& model, const std::vector<Finding>& findings);
  // This process goes on: drops the findings about it.
  void forget(const proc::ProcessKey& key);
  // Adds the kept findings to `findings`, for processes that these do not explain; `model` gets the processes that it
  // does not have. A cause that was seen replaces a guess in `findings`.
  void add_to(model::Model& model, std::vector<Finding>& findings) const;

  // For `forksight report`: writes the findings into the folder of the run, to be read again later; "" or the reason of
  // the failure.
  std::string write(const std::filesystem::path& folder) const;
  static OutsideFindings read(const std::vector<std::filesystem::path>& folders, std::vector<std::string>& limits);

 private:
  std::vector<KeptFinding> kept_;
  bool was_written_ = false;  // something that was dropped since then
};

}  // namespace forksight
