#include "proc/restarted_calls.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <climits>

#include "proc/descriptors.hpp"
#include "proc/wait_class.hpp"

namespace forksight::proc {
namespace {

bool is_restarted_futex(std::uint64_t operation) {
  switch (static_cast<std::uint32_t>(operation) & ~std::uint32_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME}) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI: return true;
    default: return false;
  }
}

// Calls on sockets fail with EINTR if the socket has a time limit (SO_RCVTIMEO, SO_SNDTIMEO). No process can see the
// limit of another process's socket. So only pipes and FIFOs count.
bool is_pipe(std::int32_t pid, const Syscall& call) {
  return find_object(pid, as_int(call.args[0])).kind == ObjectKind::kPipe;
}

}  // namespace

bool is_restarted_after_handler(std::int32_t pid, const Syscall& call) {
  if (!call.in_syscall || has_timeout(call)) return false;
  switch (call.number) {
    case SYS_futex: return is_restarted_futex(call.args[1]);
    case SYS_wait4:
    case SYS_waitid:
    case SYS_flock: return true;
    case SYS_fcntl: return call.args[1] == F_SETLKW || call.args[1] == F_OFD_SETLKW;
    case SYS_read:
    case SYS_readv: return is_pipe(pid, call);
    // A longer write may be half done. Then it returns the number of bytes that were written, and is not restarted.
    case SYS_write: return call.args[2] <= PIPE_BUF && is_pipe(pid, call);
    default: return false;
  }
}

}  // namespace forksight::proc
