// Findings with the same cause get the same fingerprint, sixteen hex digits. It is the same in all runs, on all ranks
// and machines, and for `run`, `why` and `core`.
#pragma once

#include <string>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight {

// A hash over these: the rule; the file name of the program; the name or text of the script that it interprets; the
// name of the culprit's library, without its version; the name of a lock that is a global; the program's own functions
// on the stack of the thread that hangs or fails; the files of Python functions there. It contains no addresses, pids,
// lines or folders, and nothing of libc or libstdc++. If no function has a name, the names of the modules are used
// instead. For predictions and corrupted data, which `why` and `core` do not report, the hash also contains the
// culprit's stack.
std::string fingerprint(const model::Model& model, const Finding& finding);

}  // namespace forksight
