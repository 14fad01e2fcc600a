// What a message costs on this machine, compared with a pipe: for users who ask whether a queue is worth it. bench/
// compares it with other libraries.
#pragma once

#include <string>

#include "forksight/ipc/result.hpp"

namespace forksight {

// A table; takes a second or two.
ipc::result<std::string> queue_bench();

}  // namespace forksight
