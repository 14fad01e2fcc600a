// Same cause, same sixteen hex digits: across runs, ranks and machines.
#pragma once

#include <string>

#include "diagnose/finding.hpp"

namespace forksight {

// Over the rule, the base name of the culprit's library, its symbol if it is a named lock, and the functions of both
// stacks. No addresses, pids or lines. Without symbols the module stands for its functions.
std::string fingerprint(const Finding& finding);

}  // namespace forksight
