#include "watch/wait_words.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "proc/descriptors.hpp"
#include "proc/futex_word.hpp"
#include "proc/namespaces.hpp"
#include "proc/poll_set.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"
#include "proc/thread_sample.hpp"
#include "proc/wait_class.hpp"
#include "watch/futex_lookup.hpp"
#include "watch/queue_wait.hpp"

namespace forksight::watch {
namespace {

constexpr std::size_t kMostNamed = 4;

std::int32_t as_int(std::uint64_t argument) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(argument)); }

std::string name_process(std::int32_t pid) {
  const auto stat = proc::read_stat(pid);
  if (!stat) return fmt::format("process {}, which has ended", pid);
  const bool has_ended = stat->state == 'Z' || stat->state == 'X';
  return fmt::format("process {} ({}){}", pid, stat->comm, has_ended ? ", which has ended" : "");
}

// "process 4 (a) and process 5 (b)"; at most kMostNamed of them.
std::string name_processes(const std::set<std::int32_t>& pids) {
  std::string text;
  std::size_t count = 0;
  for (const std::int32_t pid : pids) {
    if (++count > kMostNamed) return text + fmt::format(" and {} more", pids.size() - kMostNamed);
    text += (count == 1 ? "" : count == pids.size() ? " and " : ", ") + name_process(pid);
  }
  return text;
}

std::string describe_futex(std::int32_t pid, const proc::ThreadSample& thread) {
  const WaitFacts facts = FutexLookup(pid).look_up(thread);
  const proc::FutexWord& word = facts.word;
  const bool is_join = word.use == model::FutexUse::kJoin;
  if (word.use == model::FutexUse::kUnknown) return describe_queue_wait(pid, thread.tid, thread.call.args[0]);
  if (is_join) return fmt::format("the end of thread {}", word.owner);
  const char* const kind = word.use == model::FutexUse::kMutex ? "mutex" : "rwlock";
  const std::string lock = fmt::format("the {} at {:#x}", kind, word.lock);
  if (word.owner_is_gone) return fmt::format("{}, whose owner {} is gone", lock, word.owner);
  if (word.owner != 0) return fmt::format("{}, which thread {} holds", lock, word.owner);
  return fmt::format("{}, which is locked for reading{}", lock,
                     word.readers == 1 ? "" : fmt::format(" {} times", word.readers));
}

// System V's numbers mean something within one namespace only.
bool shares_ipc(std::int32_t tid) {
  return proc::read_link("/proc/self/ns/ipc") == proc::read_link(proc::proc_path(tid, "ns/ipc"));
}

// The kernel gives the pid in our numbers, and 0 for one that we do not see.
std::string name_last(const char* what, std::int32_t pid) {
  return pid > 0 ? fmt::format(", {} by {}", what, name_process(pid)) : std::string();
}

std::string describe_semaphore(const proc::ThreadSample& thread) {
  const int set = as_int(thread.call.args[0]);
  std::string text = fmt::format("System V semaphore set {}", set);
  const auto count = static_cast<std::size_t>(thread.call.args[2]);
  std::vector<sembuf> wanted(std::min(count, std::size_t{500}));  // SEMOPM
  const auto bytes = std::as_writable_bytes(std::span(wanted));
  if (!proc::ProcessMemory(thread.tid).read(thread.call.args[1], bytes) || !shares_ipc(thread.tid)) return text;
  // The first that cannot be done now is what it waits for.
  for (const sembuf& one : wanted) {
    const int value = ::semctl(set, one.sem_num, GETVAL);
    if (value < 0) return text;
    const bool waits = one.sem_op == 0 ? value != 0 : value + one.sem_op < 0;
    if (!waits) continue;
    text += one.sem_op == 0 ? fmt::format(": that number {}, which is {}, becomes 0", one.sem_num, value)
                            : fmt::format(": that number {}, which is {}, reaches {}", one.sem_num, value, -one.sem_op);
    return text + name_last("last changed", ::semctl(set, one.sem_num, GETPID));
  }
  return text;
}

std::string describe_messages(const proc::ThreadSample& thread) {
  const int queue = as_int(thread.call.args[0]);
  const std::string text = fmt::format("System V message queue {}", queue);
  msqid_ds about{};
  if (!shares_ipc(thread.tid) || ::msgctl(queue, IPC_STAT, &about) != 0) return text;
  const std::string filled =
      fmt::format("{} with {} message{} in it", text, about.msg_qnum, about.msg_qnum == 1 ? "" : "s");
  if (thread.call.number == SYS_msgrcv) return filled + name_last("last written", about.msg_lspid);
  return filled + name_last("last read", about.msg_lrpid);
}

// Whoever has the same queue, or FIFO, open in a way that could end the wait.
std::string name_holders(std::int32_t pid, const std::string& object, bool by_reader) {
  std::set<std::int32_t> refused;
  std::set<std::int32_t> others;
  bool is_own = false;
  for (const proc::Holder& holder : proc::find_holders({object}, {pid}, refused)) {
    if (!(by_reader ? holder.reads : holder.writes)) continue;
    if (holder.pid == pid) is_own = true;
    if (holder.pid != pid) others.insert(holder.pid);
  }
  const char* const way = by_reader ? "reading" : "writing";
  if (!others.empty()) return fmt::format("; open for {} in {}", way, name_processes(others));
  return is_own ? fmt::format("; open for {} in this process only", way)
                : fmt::format("; nobody has it open for {}", way);
}

std::string describe_queue(std::int32_t pid, const proc::ThreadSample& thread) {
  const auto name = proc::read_link(proc::proc_path(thread.tid, fmt::format("fd/{}", as_int(thread.call.args[0]))));
  if (!name) return {};
  const bool reads = thread.call.number == SYS_mq_timedreceive;
  return fmt::format("the POSIX message queue {}{}", *name, name_holders(pid, *name, !reads));
}

std::string describe_fd(const proc::ThreadSample& thread, std::int32_t fd) {
  return proc::read_link(proc::proc_path(thread.tid, fmt::format("fd/{}", fd))).value_or("");
}

// open() sleeps at a FIFO only, until somebody opens the other end.
std::string describe_open(std::int32_t pid, const proc::ThreadSample& thread) {
  const bool is_at = thread.call.number == SYS_openat;
  std::array<char, 4096> path{};
  const proc::ProcessMemory memory(thread.tid);
  for (std::size_t length = 0; length < path.size() - 1; ++length) {
    if (!memory.read(thread.call.args[is_at ? 1 : 0] + length, std::as_writable_bytes(std::span(&path[length], 1))))
      return {};
    if (path[length] == '\0') break;
  }
  std::string name(path.data());
  const std::int32_t folder = is_at ? as_int(thread.call.args[0]) : AT_FDCWD;
  const std::string base = folder == AT_FDCWD ? "cwd" : fmt::format("fd/{}", folder);
  const std::string place = name.starts_with('/') ? "root" + name : base + "/" + name;
  struct stat status {};
  if (::stat(proc::proc_path(thread.tid, place).c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) return {};
  if (!name.starts_with('/')) name = proc::read_link(proc::proc_path(thread.tid, base)).value_or("") + "/" + name;
  const bool reads = (as_int(thread.call.args[is_at ? 2 : 1]) & O_ACCMODE) == O_RDONLY;
  return fmt::format("the FIFO {}, for somebody who {}{}", name, reads ? "writes" : "reads",
                     name_holders(pid, name, !reads));
}

std::string describe_polled(const proc::ThreadSample& thread) {
  const auto fds = proc::read_poll_set(thread);
  if (!fds || fds->empty()) return {};
  std::string text;
  for (std::size_t index = 0; index < fds->size() && index < kMostNamed; ++index) {
    text += (index == 0 ? "" : ", ") + describe_fd(thread, (*fds)[index]);
  }
  return fds->size() > kMostNamed ? text + fmt::format(" and {} more", fds->size() - kMostNamed) : text;
}

std::string describe_child(std::int32_t pid, const proc::ThreadSample& thread) {
  const bool is_wait4 = thread.call.number == SYS_wait4;
  const std::int32_t child = as_int(thread.call.args[is_wait4 ? 0 : 1]);
  const bool is_one = is_wait4 || as_int(thread.call.args[0]) == 1;  // P_PID
  std::set<std::int32_t> children;
  for (const std::int32_t one : proc::read_children(pid)) {
    if (!is_one || child <= 0 || proc::is_called(one, child, thread.status.ns_depth)) children.insert(one);
  }
  return children.empty() ? std::string() : name_processes(children);
}

}  // namespace

std::string describe_target(std::int32_t pid, const proc::ThreadSample& thread) {
  if (thread.ended() || thread.call.running || !thread.call.in_syscall) return {};
  if (proc::is_poll(thread.call)) return describe_polled(thread);
  switch (thread.call.number) {
    case SYS_futex: return describe_futex(pid, thread);
    case SYS_semop:
    case SYS_semtimedop: return describe_semaphore(thread);
    case SYS_msgrcv:
    case SYS_msgsnd: return describe_messages(thread);
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend: return describe_queue(pid, thread);
    case SYS_open:
    case SYS_openat: return describe_open(pid, thread);
    case SYS_wait4:
    case SYS_waitid: return describe_child(pid, thread);
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_flock:
    case SYS_fcntl:
    case SYS_ioctl: return describe_fd(thread, as_int(thread.call.args[0]));
    default: return {};
  }
}

}  // namespace forksight::watch
