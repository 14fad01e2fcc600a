#include "command/why_awake.hpp"

#include <fmt/core.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <map>

#include "diagnose/words.hpp"
#include "render/printable.hpp"

namespace forksight {
namespace {

constexpr std::size_t kMostProcesses = 16;
constexpr std::size_t kMostKinds = 8;

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
    case SYS_waitid: return "wait for a child";
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
    case SYS_ioctl: return "ioctl";
    default: return nullptr;
  }
}

std::string describe_call(const inspect::AwakeProcess::Thread& thread) {
  if (thread.state == 'T' || thread.state == 't') return "stopped";
  if (thread.state == 'R' || thread.call.running) return "running";
  if (thread.state == 'D') return "in the kernel, not to be interrupted (disk, network file system)";
  if (!thread.call.in_syscall) return "waiting outside of a system call";
  if (thread.call.number == SYS_futex) {
    const bool is_timed = thread.call.args[3] != 0;
    return is_timed ? "in a futex with a timeout" : "in a futex without a timeout";
  }
  const char* const name = name_of(thread.call.number);
  return name != nullptr ? fmt::format("in {}", name) : fmt::format("in system call {}", thread.call.number);
}

// " (f() at a.c:5)" of the user's own code, where the thread could be looked at.
std::string place_of(const model::Model& model, std::int32_t pid, std::int32_t tid) {
  for (const model::Process& process : model.processes) {
    if (process.pid != pid) continue;
    const auto wait = std::ranges::find(process.waits, tid, &model::Wait::tid);
    if (wait != process.waits.end()) return words::long_place(wait->stack);
  }
  return {};
}

std::string describe(const inspect::AwakeProcess::Thread& thread, const std::string& place) {
  std::string text = describe_call(thread);
  if (!thread.target.empty()) text += ": " + render::printable(thread.target);
  return place.empty() ? text : fmt::format("{}, at {}", text, render::printable(place));
}

std::string head(const inspect::AwakeProcess& process) {
  const std::string exe(words::base_name(process.exe));
  std::string text = fmt::format("process {}{}", process.pid, exe.empty() ? exe : fmt::format(" ({})", exe));
  for (std::size_t i = 0; i < process.ways_out.size(); ++i) {
    text += (i == 0 ? ", which no task can wake, only " : " or ") + process.ways_out[i];
  }
  return text;
}

std::string list(const std::map<std::string, std::vector<std::string>>& kinds) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [what, threads] : kinds) {
    if (++shown > kMostKinds) break;
    text +=
        fmt::format("    - {}: {}\n",
                    threads.size() == 1 ? threads.front() : words::count(threads.size(), "thread", "threads"), what);
  }
  return text;
}

}  // namespace

std::string describe_awake(const inspect::LiveTree& tree, const model::Model& model) {
  if (tree.awake.empty()) return {};
  std::string text = "Not stuck for good; as far as can be told from outside, each can still be woken:\n";
  for (std::size_t i = 0; i < tree.awake.size() && i < kMostProcesses; ++i) {
    const inspect::AwakeProcess& process = tree.awake[i];
    std::map<std::string, std::vector<std::string>> kinds;
    for (const auto& thread : process.threads) {
      kinds[describe(thread, place_of(model, process.pid, thread.tid))].push_back(
          render::printable(fmt::format("thread {}{}", thread.tid, words::quoted(thread.name))));
    }
    text += "  " + render::printable(head(process)) + "\n" + list(kinds);
  }
  if (tree.awake.size() > kMostProcesses) text += fmt::format("  and {} more\n", tree.awake.size() - kMostProcesses);
  return text;
}

}  // namespace forksight
