#include "watch/sampler.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "watch/proc_fs.hpp"

namespace forksight::watch {
namespace {

WordMapping find_mapping(std::int32_t tid, std::uint64_t word) {
  constexpr std::size_t kMaxMaps = 16U << 20U;
  const ReadText maps = read_file(proc_path(tid, "maps"), kMaxMaps);
  for (std::size_t start = 0; start < maps.text.size();) {
    std::size_t end = maps.text.find('\n', start);
    if (end == std::string::npos) break;  // a line that was cut
    const auto mapping = parse_mapping(std::string_view(maps.text).substr(start, end - start));
    start = end + 1;
    if (!mapping || word < mapping->start || word >= mapping->end) continue;
    if (mapping->shared) return WordMapping::kShared;
    // A private page that cannot be written may be the file's own, which other processes share.
    return mapping->writable ? WordMapping::kPrivate : WordMapping::kUnknown;
  }
  return WordMapping::kUnknown;
}

std::optional<std::int32_t> read_futex_owner(std::int32_t tid, std::uint64_t word) {
  const int fd = ::open(proc_path(tid, "mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::uint32_t value = 0;
  const ssize_t got = ::pread(fd, &value, sizeof value, static_cast<off_t>(word));
  ::close(fd);
  if (got != static_cast<ssize_t>(sizeof value)) return std::nullopt;
  return static_cast<std::int32_t>(value & static_cast<std::uint32_t>(FUTEX_TID_MASK));
}

}  // namespace

std::optional<ThreadSample> sample_thread(std::int32_t pid, std::int32_t tid, bool& refused) {
  const ReadText status_text = read_file(task_path(pid, tid, "status"));
  refused = refused || status_text.outcome == ReadOutcome::kRefused;
  if (!status_text) return std::nullopt;
  auto status = parse_status(status_text.text);
  if (!status) return std::nullopt;
  ThreadSample thread;
  thread.tid = tid;
  thread.status = std::move(*status);
  if (thread.ended()) return thread;
  const ReadText call_text = read_file(task_path(pid, tid, "syscall"));
  refused = refused || call_text.outcome == ReadOutcome::kRefused;
  if (!call_text) return std::nullopt;
  const auto call = parse_syscall(call_text.text);
  if (!call) return std::nullopt;
  thread.call = *call;
  return thread;
}

std::optional<Round> sample_round(std::int32_t pid, bool& refused) {
  const ListedNumbers tids = list_numbers(proc_path(pid, "task"));
  refused = refused || tids.outcome == ReadOutcome::kRefused;
  if (tids.numbers.empty()) return std::nullopt;
  Round round;
  round.threads.reserve(tids.numbers.size());
  for (const std::int32_t tid : tids.numbers) {
    auto thread = sample_thread(pid, tid, refused);
    if (!thread) return std::nullopt;
    round.threads.push_back(std::move(*thread));
  }
  return round;
}

bool is_awake(std::int32_t pid, std::int32_t tid) {
  const ReadText text = read_file(task_path(pid, tid, "syscall"));
  const auto call = text ? parse_syscall(text.text) : std::nullopt;
  // A thread that has ended shows "-1 0x0 0x0": no sign of life.
  if (!call || (!call->running && !call->in_syscall && call->sp == 0)) return false;
  ThreadSample thread;
  thread.status.state = 'S';
  thread.call = *call;
  return classify(thread).kind == WaitClass::kAwakable;
}

bool runs_x86_64(std::int32_t tid) {
  const int fd = ::open(proc_path(tid, "exe").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  Elf64_Ehdr header;
  const ssize_t got = ::pread(fd, &header, sizeof header, 0);
  ::close(fd);
  return got == static_cast<ssize_t>(sizeof header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64;
}

bool has_io_uring(std::int32_t tid) {
  // A ring may be mapped without a descriptor, or open without being mapped.
  constexpr std::size_t kMaxMaps = 16U << 20U;
  if (read_file(proc_path(tid, "maps"), kMaxMaps).text.find("[io_uring]") != std::string::npos) return true;
  for (const std::int32_t fd : list_numbers(proc_path(tid, "fd")).numbers) {
    const auto link = read_link(proc_path(tid, "fd/" + std::to_string(fd)));
    if (link && link->find("[io_uring]") != std::string::npos) return true;
  }
  return false;
}

Sharing find_sharing(std::int32_t pid, std::int32_t tid) {
  const ListedNumbers pids = list_numbers("/proc");
  for (const std::int32_t other : pids.numbers) {
    if (other == pid) continue;
    const long order = ::syscall(SYS_kcmp, tid, other, KCMP_VM, 0, 0);
    if (order == 0) return Sharing::kShared;
    // EPERM: a process of somebody else; memory is not shared across a change of rights that exec would make.
    // ESRCH: it ended, or is a kernel thread.
    if (order < 0 && errno != EPERM && errno != ESRCH && errno != EACCES) return Sharing::kUnknown;
  }
  // Where kcmp is forbidden altogether it fails for every pair: ask for one that must answer.
  const long self = ::syscall(SYS_kcmp, tid, tid, KCMP_VM, 0, 0);
  return self == 0 ? Sharing::kAlone : Sharing::kUnknown;
}

WaitFacts look_up_futex(const ThreadSample& thread) {
  WaitFacts facts;
  const WaitTarget target = classify(thread);
  if (target.kind != WaitClass::kPrivateFutex && target.kind != WaitClass::kPlainFutex) return facts;
  if (target.kind == WaitClass::kPlainFutex) facts.mapping = find_mapping(thread.tid, target.word);
  if (target.priority_inherit) facts.pi_owner = read_futex_owner(thread.tid, target.word);
  facts.kernel_function = read_file(proc_path(thread.tid, "wchan")).text;
  return facts;
}

std::optional<std::int32_t> resolve_pidfd(std::int32_t pid, std::int32_t fd) {
  const ReadText text = read_file(proc_path(pid, "fdinfo/" + std::to_string(fd)));
  const auto field = text ? find_field(text.text, "Pid") : std::nullopt;
  const auto target = field ? parse_decimal(*field) : std::nullopt;
  if (!target || *target <= 0) return std::nullopt;
  return static_cast<std::int32_t>(*target);
}

}  // namespace forksight::watch
