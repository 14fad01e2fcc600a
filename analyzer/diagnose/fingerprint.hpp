// Same cause, same sixteen hex digits: across runs, ranks and machines, and whether `run`, `why` or `core` tells it.
#pragma once

#include <string>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight {

// Over the rule; the file names of the program, of the script that it interprets, and of the culprit's library, without
// versions; the name of a lock that is a global; and the program's own functions on the stack of the thread that suffers, with the files of Python ones.
// No addresses, pids, lines or folders, and nothing of libc's or libstdc++'s. Where no function has a name, the modules
// stand for them. Of predictions and of corrupted data, which `why` and `core` do not tell, also those on the culprit's
// stack.
std::string fingerprint(const model::Model& model, const Finding& finding);

}  // namespace forksight
