#include "watch/wait_objects.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "files/dead_places.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"

namespace forksight::watch {
namespace {

constexpr std::size_t kMostOperations = 500;  // SEMOPM

bool is_gone(std::int32_t pid) {
  const auto stat = proc::read_stat(pid);
  return !stat || stat->state == 'Z' || stat->state == 'X';
}

}  // namespace

bool shares_ipc(std::int32_t tid) {
  return proc::read_link("/proc/self/ns/ipc") == proc::read_link(proc::proc_path(tid, "ns/ipc"));
}

std::optional<FifoOpen> find_fifo_open(const proc::ThreadSample& thread) {
  const bool is_at = thread.call.number == SYS_openat;
  const bool is_open = thread.call.in_syscall && (is_at || thread.call.number == SYS_open);
  if (!is_open || thread.status.state != 'S') return std::nullopt;
  auto name = proc::ProcessMemory(thread.tid).read_c_string(thread.call.args[is_at ? 1 : 0]);
  if (!name || name->empty()) return std::nullopt;
  const std::int32_t folder = is_at ? proc::as_int(thread.call.args[0]) : AT_FDCWD;
  const std::string base = folder == AT_FDCWD ? "cwd" : fmt::format("fd/{}", folder);
  const bool is_whole = name->starts_with('/');
  const std::string place = is_whole ? "root" + *name : base + "/" + *name;
  FifoOpen fifo;
  struct stat status {};
  if (files::stat_living(proc::proc_path(thread.tid, place), status) != 0) {
    // The name no longer exists. But the object must be a FIFO, because open() sleeps in the kernel function
    // wait_for_partner() only for a FIFO.
    fifo.is_unlinked =
        errno == ENOENT && proc::read_file(proc::proc_path(thread.tid, "wchan")).text.starts_with("wait_for_partner");
    if (!fifo.is_unlinked) return std::nullopt;
  } else if (!S_ISFIFO(status.st_mode)) {
    return std::nullopt;
  }
  if (!is_whole) *name = proc::read_link(proc::proc_path(thread.tid, base)).value_or("") + "/" + *name;
  fifo.path = std::move(*name);
  fifo.reads = (proc::as_int(thread.call.args[is_at ? 2 : 1]) & O_ACCMODE) == O_RDONLY;
  return fifo;
}

std::optional<model::SemaphoreWait> find_semaphore(const proc::ThreadSample& thread) {
  const bool is_semop = thread.call.number == SYS_semop || thread.call.number == SYS_semtimedop;
  if (!thread.call.in_syscall || !is_semop) return std::nullopt;
  const auto count = static_cast<std::size_t>(thread.call.args[2]);
  std::vector<sembuf> wanted(std::min(count, kMostOperations));
  const auto bytes = std::as_writable_bytes(std::span(wanted));
  if (!proc::ProcessMemory(thread.tid).read(thread.call.args[1], bytes) || !shares_ipc(thread.tid)) return std::nullopt;
  model::SemaphoreWait wait;
  wait.set = proc::as_int(thread.call.args[0]);
  for (const sembuf& one : wanted) {
    wait.value = ::semctl(wait.set, one.sem_num, GETVAL);
    if (wait.value < 0) return std::nullopt;
    const bool waits = one.sem_op == 0 ? wait.value != 0 : wait.value + one.sem_op < 0;
    if (!waits) continue;
    wait.number = one.sem_num;
    wait.operation = one.sem_op;
    wait.last_pid = std::max(::semctl(wait.set, one.sem_num, GETPID), 0);
    wait.last_is_gone = wait.last_pid > 0 && is_gone(wait.last_pid);
    return wait;
  }
  return std::nullopt;
}

}  // namespace forksight::watch
