// Passes a queue from one process to another over a UNIX socket. Removes named queues that nobody uses any more.
#pragma once

#include <string>
#include <vector>

#include "forksight/ipc/queue.hpp"

namespace forksight::ipc {

// Sends the queue over a connected AF_UNIX socket to a process of the same user, or of root. The socket is of
// SOCK_STREAM or SOCK_SEQPACKET. Errors: untrusted, fd_limit, timeout, system.
result<void> send_queue(int socket, const queue& what, deadline until = deadline::never());
// Receives a queue. The errors are those of send_queue() and queue::attach(), and closed: the peer has gone. fd_limit:
// this process had no free descriptor, so the kernel dropped the queue's descriptor (MSG_CTRUNC). The peer may send it
// again.
result<queue> receive_queue(int socket, role as = role::any, deadline until = deadline::never());

struct gc_report {
  std::vector<std::string> removed;  // names of queues whose last user has gone
  std::vector<std::string> in_use;
  std::vector<std::string> skipped;  // "name: why"
};
// Removes named queues that no process has open. Each user of a queue holds a lock. However the user ends, the kernel
// releases that lock. dry_run: removes nothing, and only reports.
result<gc_report> gc(bool dry_run = false);
// Waits until no process has that named queue open, and then removes the name. Returns false if another process removed
// the name meanwhile. The caller does not take part in the queue, and this call keeps no state. So the caller may be
// killed at any time and started again. Errors: not_found, untrusted, bad_option, system.
result<bool> remove_when_unused(const std::string& name);

}  // namespace forksight::ipc
