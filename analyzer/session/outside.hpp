// What the traces of a run do not explain is looked at from outside, as `forksight why` does it: processes that were
// started without the shim, programs that are linked statically, locks that no hook sees.
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
  // Keeps what `seen`, the processes of the run as the inspector saw them, tells of those that `findings` of `model` leave
  // unexplained or explain by a guess. What was found once stays found: the process may be gone when the run ends.
  void keep(const model::Model& seen, const model::Model& model, const std::vector<Finding>& findings);
  // This process goes on: what was found of it is no more.
  void forget(const proc::ProcessKey& key);
  // Adds what was found to processes that `findings` do not explain; `model` gets those that it does not have. A cause
  // that was seen takes the place of one that `findings` only guess.
  void add_to(model::Model& model, std::vector<Finding>& findings) const;

  // For `forksight report`: writes what was found into the folder of the run; "" or why it could not. Reads it again.
  std::string write(const std::filesystem::path& folder) const;
  static OutsideFindings read(const std::vector<std::filesystem::path>& folders, std::vector<std::string>& limits);

 private:
  std::vector<KeptFinding> kept_;
  bool was_written_ = false;  // something that has been forgotten since
};

}  // namespace forksight
