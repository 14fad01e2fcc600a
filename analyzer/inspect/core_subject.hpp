// A core file as a process to be explained. A core is one instant of all threads together, which is what the proof of a
// hang needs; what it does not have is the kernel's part: signal handlers, descriptors, other processes.
#pragma once

#include <string>
#include <vector>

#include "inspect/build_model.hpp"
#include "result.hpp"

namespace forksight::inspect {

struct CoreSubjectOptions {
  std::string exe;          // the program's file, if it is not where it was; "": it is
  std::string parent_core;  // of the process that forked it; "": there is none
};

// Without a core of its parent a forked process gets an absent one. The error is one sentence: what a file is instead
// of a core, that `exe` is another program, that the second core is not of the parent.
Result<std::vector<Subject>> open_core_subjects(const std::string& core, const CoreSubjectOptions& options = {});

}  // namespace forksight::inspect
