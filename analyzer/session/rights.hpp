// Finds processes that run as another user than forksight, and that may not write to the folder of the traces. In such
// a process the shim cannot record anything.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "proc/proc_fs.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

class RunRights {
 public:
  explicit RunRights(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // Returns a sentence for each process in which the shim cannot record anything, if the process has several threads
  // and no trace. In one run, returns only one sentence for each process.
  std::vector<std::string> look(const watch::Supervisor& supervisor);

 private:
  bool is_closed_to(uid_t user) const;

  std::filesystem::path folder_;
  std::set<proc::ProcessKey> told_;
};

}  // namespace forksight
