// Findings about hangs that the traces of a run do not explain: hangs of processes that were started without the shim,
// hangs of statically linked programs, and hangs on locks that no hook sees. forksight examines the hung processes from
// outside, as `forksight why` does.
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
  // Diagnoses `seen`, the result of an examination of the processes of the run. Keeps the findings about processes that
  // `findings` do not explain, or explain only by a guess. `findings` are the findings of `model`, which comes from the
  // traces. The kept findings stay for the rest of the run, because a process may have ended when the run ends.
  void keep(const model::Model& seen, const model::Model& model, const std::vector<Finding>& findings);
  // Drops the findings about this process, because the process goes on.
  void forget(const proc::ProcessKey& key);
  // Adds the kept findings about processes that `findings` do not explain. A kept finding replaces a guess in
  // `findings` that explains less. Adds the processes of the kept findings to `model`, unless `model` already contains
  // them.
  void add_to(model::Model& model, std::vector<Finding>& findings) const;

  // Writes the findings into the folder of the run, so that `forksight report` can read them. `fd`: as in
  // write_outside(). Returns "" or the reason of the failure.
  std::string write(const std::filesystem::path& folder, int fd) const;
  static OutsideFindings read(const files::Reader& reader, const std::vector<std::filesystem::path>& folders,
                              std::vector<std::string>& limits);

 private:
  std::vector<KeptFinding> kept_;
  std::vector<std::string> limits_;  // what the latest diagnosis in keep() has left out
  bool was_written_ = false;  // the file may still have findings that forget() has dropped
};

}  // namespace forksight
