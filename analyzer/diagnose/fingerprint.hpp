// The same cause gives the same sixteen hex digits: across runs, ranks and machines, and whether `run`, `why` or `core`
// reports it.
#pragma once

#include <string>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight {

// A hash over these: the rule; the file names, without versions, of the program, of the script that it interprets, and
// of the culprit's library; the name of a lock that is a global; the program's own functions on the stack of the thread
// that suffers; the files of Python functions there. It contains no addresses, pids, lines or folders, and nothing of
// libc or libstdc++. Where no function has a name, the modules stand for the functions. For predictions and corrupted
// data, which `why` and `core` do not report, the culprit's stack counts, too.
std::string fingerprint(const model::Model& model, const Finding& finding);

}  // namespace forksight
