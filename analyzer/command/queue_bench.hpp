// What a message costs on this machine, beside a pipe: for who wants to know whether a queue is worth it. The
// comparison with other libraries is under bench/.
#pragma once

#include <string>

#include "forksight/ipc/result.hpp"

namespace forksight {

// A table; takes a second or two.
ipc::result<std::string> queue_bench();

}  // namespace forksight
