// Opens a core file as a subject. The proof of a hang needs the states of all threads at one instant, and a core shows
// these states. A core lacks what only the kernel knows: signal handlers, descriptors, other processes.
#pragma once

#include <string>
#include <vector>

#include "files/reader.hpp"
#include "inspect/build_model.hpp"
#include "result.hpp"

namespace forksight::inspect {

struct CoreSubjectOptions {
  std::string exe;          // the program's file, if it has moved; "": it has not
  std::string parent_core;  // a core of the parent, which forked the process; "": there is none
};

// Returns the process of `core`, followed by its parent. Without a core of the parent, an absent parent is added if the
// process is forked and hangs. The error is one sentence: the file is no core, `exe` is another program, or
// `parent_core` is not a core of the parent.
Result<std::vector<Subject>> open_core_subjects(const files::Reader& reader, const std::string& core,
                                                const CoreSubjectOptions& options = {});

}  // namespace forksight::inspect
