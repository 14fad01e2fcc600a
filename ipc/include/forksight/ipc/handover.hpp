// A queue from one process to another over a UNIX socket, and named queues that nobody uses any more.
#pragma once

#include <string>
#include <vector>

#include "forksight/ipc/queue.hpp"

namespace forksight::ipc {

// Over a connected AF_UNIX socket, of SOCK_STREAM or SOCK_SEQPACKET, to a process of the same user.
// Errors: untrusted, fd_limit, timeout, system.
result<void> send_queue(int socket, const queue& what, deadline until = deadline::never());
// Also closed (the peer has gone), and the errors of queue::attach(). fd_limit: this process had no descriptor left,
// and the kernel has thrown away the queue's (MSG_CTRUNC). The peer may send it again.
result<queue> receive_queue(int socket, role as = role::any, deadline until = deadline::never());

struct gc_report {
  std::vector<std::string> removed;  // names of queues whose last user has gone
  std::vector<std::string> in_use;
  std::vector<std::string> skipped;  // "name: why"
};
// Removes named queues that no process has open. Each user of a queue holds a lock, which the kernel takes back when
// the user ends, in whatever way. dry_run: only says which.
result<gc_report> gc(bool dry_run = false);
// Waits until nobody has that named queue open, and removes it then. False: its name was removed meanwhile. The caller
// takes no part in the queue and keeps no state: it may be killed at any time, and started again.
// Errors: not_found, untrusted, bad_option, system.
result<bool> remove_when_unused(const std::string& name);

}  // namespace forksight::ipc
