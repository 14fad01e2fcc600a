// What is done with the parked messages of queues: into files with them, or back to the consumers.
#pragma once

#include <cstddef>
#include <string>

#include "forksight/ipc/result.hpp"

namespace forksight {

// Of each queue that `what` names (queue_find.hpp): writes every parked message into a file of its own in `folder`, and
// only then frees its buffer. Says which file on standard output, after each. A message that could not be written stays
// parked.
ipc::result<void> drain_parked(const std::string& what, const std::string& folder);
// Parked messages go to the next receive(). Returns how many there were.
ipc::result<std::size_t> requeue_parked(const std::string& what);

}  // namespace forksight
