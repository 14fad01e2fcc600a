#include "proc/restarted_calls.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <climits>

#include "proc/descriptors.hpp"
#include "proc/process_memory.hpp"
#include "proc/wait_class.hpp"

namespace forksight::proc {
namespace {

constexpr std::uint32_t kFutexLockPi2 = 13;  // newer kernel headers define this in linux/futex.h

std::uint32_t operation_of(std::uint64_t argument) {
  return static_cast<std::uint32_t>(argument) & ~std::uint32_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
}

// After a signal handler, a call on a socket fails with EINTR if the socket has a time limit (SO_RCVTIMEO,
// SO_SNDTIMEO). /proc does not show the time limit of another process's socket. So only pipes count.
bool is_pipe(std::int32_t pid, const Syscall& call) {
  return find_object(pid, as_int(call.args[0])).kind == ObjectKind::kPipe;
}

std::optional<std::uint32_t> read_word(std::int32_t pid, std::uint64_t address) {
  const auto value = ProcessMemory(pid).read(address, sizeof(std::uint32_t));
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

}  // namespace

bool is_restarted_futex(std::uint64_t operation) {
  switch (operation_of(operation)) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI:
    case kFutexLockPi2: return true;
    default: return false;
  }
}

bool would_wait_again(const Syscall& call, std::optional<std::uint32_t> word) {
  if (call.number != SYS_futex) return true;
  const std::uint32_t operation = operation_of(call.args[1]);
  // The word of a lock with priority inheritance contains the owner of the lock. The kernel itself maintains this word.
  if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET) return true;
  return word == static_cast<std::uint32_t>(call.args[2]);
}

bool is_restarted_after_handler(std::int32_t pid, const Syscall& call) {
  if (!call.in_syscall || has_timeout(call)) return false;
  switch (call.number) {
    case SYS_futex: return is_restarted_futex(call.args[1]) && would_wait_again(call, read_word(pid, call.args[0]));
    case SYS_wait4:
    case SYS_waitid:
    case SYS_flock: return true;
    case SYS_fcntl: return call.args[1] == F_SETLKW || call.args[1] == F_OFD_SETLKW;
    case SYS_read:
    case SYS_readv: return is_pipe(pid, call);
    // A write of more than PIPE_BUF bytes may be half done. Then the call returns the number of bytes that were
    // written, and is not restarted.
    case SYS_write: return call.args[2] <= PIPE_BUF && is_pipe(pid, call);
    default: return false;
  }
}

}  // namespace forksight::proc
