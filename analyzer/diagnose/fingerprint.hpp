// Findings with the same cause get the same fingerprint, which has sixteen hex digits. The fingerprint is the same in
// all runs, on all ranks and machines, and for `run`, `why` and `core`.
#pragma once

#include <string>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight {

// The fingerprint is a hash over these: the rule; the file name of the program; the name or text of the script, if the
// program is an interpreter; the name of the culprit's library, without its version; the name of a lock that is a
// global variable; the program's own functions on the stack of the thread that hangs or fails; the files of Python
// functions on this stack. The hash contains no addresses, pids, lines or folders, and nothing of libc or libstdc++. If
// no function has a name, the names of the modules are used instead. For predictions and corrupted data, the hash also
// contains the culprit's stack. `why` and `core` report neither predictions nor corrupted data.
std::string fingerprint(const model::Model& model, const Finding& finding);

}  // namespace forksight
