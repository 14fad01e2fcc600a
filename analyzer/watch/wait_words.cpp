#include "watch/wait_words.hpp"

#include <fmt/core.h>
#include <sys/msg.h>
#include <sys/syscall.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "proc/descriptor_tables.hpp"
#include "proc/futex_word.hpp"
#include "proc/namespaces.hpp"
#include "proc/poll_set.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"
#include "proc/socket_names.hpp"
#include "proc/thread_sample.hpp"
#include "proc/wait_class.hpp"
#include "watch/queue_wait.hpp"
#include "watch/wait_objects.hpp"

namespace forksight::watch {
namespace {

constexpr std::size_t kMostNamed = 4;

std::string name_process(std::int32_t pid) {
  const auto stat = proc::read_stat(pid);
  if (!stat) return fmt::format("process {}, which has ended", pid);
  const bool has_ended = stat->state == 'Z' || stat->state == 'X';
  return fmt::format("process {} ({}){}", pid, stat->comm, has_ended ? ", which has ended" : "");
}

// Names at most kMostNamed of these processes: "process 4 (a) and process 5 (b)".
std::string name_processes(const std::set<std::int32_t>& pids) {
  std::string text;
  std::size_t count = 0;
  for (const std::int32_t pid : pids) {
    if (++count > kMostNamed) return text + fmt::format(" and {} more", pids.size() - kMostNamed);
    text += (count == 1 ? "" : count == pids.size() ? " and " : ", ") + name_process(pid);
  }
  return text;
}

std::string describe_futex(const files::Reader& reader, proc::DescriptorTables& tables, std::int32_t pid,
                           const proc::ThreadSample& thread, const WaitFacts& facts) {
  const proc::FutexWord& word = facts.word;
  const bool is_join = word.use == model::FutexUse::kJoin;
  if (word.use == model::FutexUse::kUnknown)
    return describe_queue_wait(reader, tables, pid, thread.tid, thread.call.args[0]);
  if (is_join) return fmt::format("the end of thread {}", word.owner);
  if (word.use == model::FutexUse::kGil) return fmt::format("Python's GIL, which thread {} has", word.owner);
  const char* const kind = word.use == model::FutexUse::kMutex ? "mutex" : "rwlock";
  const std::string lock = fmt::format("the {} at {:#x}", kind, word.lock);
  if (word.owner_is_gone) return fmt::format("{}, whose owner {} is gone", lock, word.owner);
  if (word.owner != 0) return fmt::format("{}, which thread {} holds", lock, word.owner);
  return fmt::format("{}, which is locked for reading{}", lock,
                     word.readers == 1 ? "" : fmt::format(" {} times", word.readers));
}

// Returns `what` and the name of the process that the kernel names: ", last changed by process 5 (b)". `pid`: in
// forksight's pid namespace; 0: forksight cannot see the process, and the result is "".
std::string name_last(const char* what, std::int32_t pid) {
  return pid > 0 ? fmt::format(", {} by {}", what, name_process(pid)) : std::string();
}

std::string describe_semaphore(const proc::ThreadSample& thread) {
  const auto wait = find_semaphore(thread);
  if (!wait) return fmt::format("System V semaphore set {}", proc::as_int(thread.call.args[0]));
  const std::string wanted = wait->operation == 0 ? "becomes 0" : fmt::format("reaches {}", -wait->operation);
  return fmt::format("System V semaphore set {}: until semaphore {}, which is {} now, {}{}", wait->set, wait->number,
                     wait->value, wanted, name_last("last changed", wait->last_pid));
}

std::string describe_messages(const proc::ThreadSample& thread) {
  const int queue = proc::as_int(thread.call.args[0]);
  const std::string text = fmt::format("System V message queue {}", queue);
  msqid_ds about{};
  if (!shares_ipc(thread.tid) || ::msgctl(queue, IPC_STAT, &about) != 0) return text;
  const std::string filled =
      fmt::format("{} with {} message{} in it", text, about.msg_qnum, about.msg_qnum == 1 ? "" : "s");
  if (thread.call.number == SYS_msgrcv) return filled + name_last("last written", about.msg_lspid);
  return filled + name_last("last read", about.msg_lrpid);
}

// Returns words that say that no other process has the queue or FIFO open in the direction that would end the wait.
// Returns "" if another process has the queue or FIFO open in this direction, because the report lists such processes
// elsewhere.
std::string describe_missing_end(proc::DescriptorTables& tables, std::int32_t pid, const std::string& object,
                                 bool by_reader) {
  bool is_own = false;
  tables.read_all({pid});
  const std::vector<proc::Holder> holders = tables.find_holders({object});
  if (tables.is_cut()) return {};
  for (const proc::Holder& holder : holders) {
    if (!(by_reader ? holder.reads : holder.writes)) continue;
    if (holder.pid != pid) return {};
    is_own = true;
  }
  const char* const way = by_reader ? "reading" : "writing";
  return is_own ? fmt::format("; open for {} in this process only", way)
                : fmt::format("; nobody has it open for {}", way);
}

std::string describe_queue(proc::DescriptorTables& tables, std::int32_t pid, const proc::ThreadSample& thread) {
  const auto name =
      proc::read_link(proc::proc_path(thread.tid, fmt::format("fd/{}", proc::as_int(thread.call.args[0]))));
  if (!name) return {};
  const bool reads = thread.call.number == SYS_mq_timedreceive;
  return fmt::format("the POSIX message queue {}{}", *name, describe_missing_end(tables, pid, *name, !reads));
}

std::string describe_fd(const proc::ThreadSample& thread, std::int32_t fd) {
  std::string link = proc::read_link(proc::proc_path(thread.tid, fmt::format("fd/{}", fd))).value_or("");
  const auto inode = proc::parse_socket_link(link);
  const auto name = inode ? proc::find_socket_name(thread.tid, *inode) : std::nullopt;
  const bool is_named = name && (!name->local.empty() || !name->remote.empty());
  return is_named ? fmt::format("{} ({})", link, proc::describe_socket(*name)) : link;
}

std::string describe_open(proc::DescriptorTables& tables, std::int32_t pid, const proc::ThreadSample& thread) {
  const auto fifo = find_fifo_open(thread);
  if (!fifo) return {};
  const std::string missing = fifo->is_unlinked ? "; nobody can open it, because its name was removed"
                                                : describe_missing_end(tables, pid, fifo->path, !fifo->reads);
  return fmt::format("the FIFO {}, for somebody who {}{}", fifo->path, fifo->reads ? "writes" : "reads", missing);
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
  const proc::WaitTarget target = proc::classify(thread);
  if (target.pidfd >= 0) {
    const auto process = proc::resolve_pidfd(thread.tid, target.pidfd);
    return process ? name_process(*process) : std::string();
  }
  std::set<std::int32_t> children;
  for (const std::int32_t one : proc::read_children(pid)) {
    if (target.child <= 0 || proc::is_called(one, static_cast<std::int32_t>(target.child), thread.status.ns_depth))
      children.insert(one);
  }
  return children.empty() ? std::string() : name_processes(children);
}

constexpr std::int64_t kFutexWaitv = 449;  // SYS_futex_waitv of Linux 5.16, which older headers do not have

const char* name_of(std::int64_t number) {
  switch (number) {
    case SYS_read: return "read";
    case SYS_readv: return "readv";
    case SYS_write: return "write";
    case SYS_writev: return "writev";
    case SYS_poll:
    case SYS_ppoll: return "poll";
    case SYS_select:
    case SYS_pselect6: return "select";
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return "epoll_wait";
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return "a sleep";
    case SYS_wait4:
    case SYS_waitid: return "a wait for a child";
    case SYS_accept:
    case SYS_accept4: return "accept";
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg: return "recv";
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg: return "send";
    case SYS_connect: return "connect";
    case SYS_pause: return "pause";
    case SYS_rt_sigtimedwait:
    case SYS_rt_sigsuspend: return "a wait for a signal";
    case SYS_flock: return "flock";
    case SYS_fcntl: return "fcntl";
    case SYS_semop:
    case SYS_semtimedop: return "semop";
    case SYS_msgrcv: return "msgrcv";
    case SYS_msgsnd: return "msgsnd";
    case SYS_mq_timedreceive: return "mq_receive";
    case SYS_mq_timedsend: return "mq_send";
    case SYS_open:
    case SYS_openat: return "open";
    case SYS_io_getevents: return "io_getevents";
    case SYS_io_uring_enter: return "io_uring_enter";
    case SYS_splice: return "splice";
    case SYS_tee: return "tee";
    case SYS_vmsplice: return "vmsplice";
    case SYS_sendfile: return "sendfile";
    case SYS_copy_file_range: return "copy_file_range";
    case SYS_fsync: return "fsync";
    case SYS_fdatasync: return "fdatasync";
    case SYS_getrandom: return "getrandom";
    case kFutexWaitv: return "futex_waitv";
    case SYS_ioctl: return "ioctl";
    default: return nullptr;
  }
}

}  // namespace

std::string describe_call(const proc::ThreadSample& thread) {
  if (thread.ended()) return "ended";
  if (thread.status.state == 'T' || thread.status.state == 't') return "stopped";
  if (thread.status.state == 'R' || thread.call.running) return "running";
  const bool is_vfork = proc::classify(thread).kind == proc::WaitClass::kVfork;
  if (thread.status.state == 'D' && !is_vfork)
    return "in the kernel, and cannot be interrupted (disk, network file system)";
  if (!thread.call.in_syscall) return "waiting outside of a system call";
  if (is_vfork) return "in vfork";
  if (thread.call.number == SYS_futex) {
    const bool is_timed = thread.call.args[3] != 0;
    return is_timed ? "in a futex with a timeout" : "in a futex without a timeout";
  }
  const char* const name = name_of(thread.call.number);
  return name != nullptr ? fmt::format("in {}", name) : fmt::format("in system call {}", thread.call.number);
}

std::string describe_target(const files::Reader& reader, proc::DescriptorTables& tables, std::int32_t pid,
                            const proc::ThreadSample& thread, const WaitFacts& facts) {
  if (thread.ended() || thread.call.running || !thread.call.in_syscall) return {};
  if (proc::is_poll(thread.call)) return describe_polled(thread);
  switch (thread.call.number) {
    case SYS_futex: return describe_futex(reader, tables, pid, thread, facts);
    case SYS_semop:
    case SYS_semtimedop: return describe_semaphore(thread);
    case SYS_msgrcv:
    case SYS_msgsnd: return describe_messages(thread);
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend: return describe_queue(tables, pid, thread);
    case SYS_open:
    case SYS_openat: return describe_open(tables, pid, thread);
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
    case SYS_ioctl: return describe_fd(thread, proc::as_int(thread.call.args[0]));
    default: return {};
  }
}

}  // namespace forksight::watch
