// Measures how long a message takes on this machine, by a queue and by a pipe. The measurement is for users who ask
// whether a queue is worth its cost. bench/ compares the queue with other libraries.
#pragma once

#include <string>

#include "forksight/ipc/result.hpp"

namespace forksight {

// Returns the measurements as a table. Takes a second or two.
ipc::result<std::string> queue_bench();

}  // namespace forksight
