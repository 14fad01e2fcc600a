// A queue from one process to another over a UNIX socket, and named queues that nobody uses any more.
#pragma once

#include <string>
#include <vector>

#include "forksight/ipc/queue.hpp"

namespace forksight::ipc {

// Over a connected AF_UNIX socket, of SOCK_STREAM or SOCK_SEQPACKET, to a process of the same user.
// Errors: untrusted, fd_limit, timeout, system.
result<void> send_queue(int socket, const queue& what, deadline until = deadline::never());
// Also closed (the peer has gone), and the errors of queue::attach(). fd_limit: the kernel had no descriptor left for
// us and has thrown the queue's away (MSG_CTRUNC); the sender may send it again.
result<queue> receive_queue(int socket, role as = role::any, deadline until = deadline::never());

struct gc_report {
  std::vector<std::string> removed;  // names of queues whose last user has gone
  std::vector<std::string> in_use;
  std::vector<std::string> skipped;  // "name: why"
};
// Removes named queues that no process has open: their users hold a lock, which the kernel takes back when they end,
// however they end. dry_run: only says which.
result<gc_report> gc(bool dry_run = false);
// Waits until nobody has that named queue open, and removes it then; false: its name was removed meanwhile. Takes no part in
// the queue and keeps nothing: whoever does this may be ended, and started again, at any time.
// Errors: not_found, untrusted, bad_option, system.
result<bool> remove_when_unused(const std::string& name);

}  // namespace forksight::ipc
