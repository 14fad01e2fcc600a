// Moves the parked messages of queues into files, or back to the consumers. A message is parked if it has killed too
// many consumers, or if a consumer has parked it.
#pragma once

#include <cstddef>
#include <string>

#include "forksight/ipc/result.hpp"

namespace forksight {

// Writes every parked message of each queue that `what` names (queue_find.hpp) into a file of its own in `folder`, and
// only then frees the message's buffer. Prints the path of each file to standard output. A message that could not be
// written stays parked.
ipc::result<void> drain_parked(const std::string& what, const std::string& folder);
// Queues the parked messages again, so that the next receive() calls get these messages. Returns the number of these
// messages.
ipc::result<std::size_t> requeue_parked(const std::string& what);

}  // namespace forksight
