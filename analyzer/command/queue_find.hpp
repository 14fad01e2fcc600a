// Finds the queues that a process has open, or the queue with a given name.
#pragma once

#include <string>
#include <vector>

#include "files/reader.hpp"
#include "forksight/ipc/queue.hpp"

namespace forksight {

// Returns the name of a queue as the library needs it: "/forksight-jobs" for "jobs", "forksight-jobs" and
// "/forksight-jobs".
std::string queue_name(const std::string& name);

// `what` is a pid, a name that queue_name() accepts, or /proc/PID/fd/N. Returns at least one queue, or the reason why
// no queue was found.
ipc::result<std::vector<ipc::snapshot>> find_queues(const files::Reader& reader, const std::string& what);

// Attaches to the queues that `what` names. The role is caretaker: this process only takes or requeues parked messages.
// Returns all queues, or the reason why one queue could not be attached.
ipc::result<std::vector<ipc::queue>> attach_queues(const std::string& what);

}  // namespace forksight
