#include "watch/sampler.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "watch/futex_word.hpp"
#include "watch/proc_fs.hpp"
#include "watch/process_memory.hpp"

namespace forksight::watch {
namespace {

WordMapping kind_of_mapping(const std::vector<Mapping>& mappings, std::uint64_t word) {
  const Mapping* const mapping = find_mapping(mappings, word);
  if (mapping == nullptr) return WordMapping::kUnknown;
  if (mapping->shared) return WordMapping::kShared;
  // A private page that cannot be written may be the file's own, which other processes share.
  return mapping->writable ? WordMapping::kPrivate : WordMapping::kUnknown;
}

std::optional<std::int32_t> read_futex_owner(const ProcessMemory& memory, std::uint64_t word) {
  const auto value = memory.read(word, sizeof(std::uint32_t));
  if (!value) return std::nullopt;
  return static_cast<std::int32_t>(*value & static_cast<std::uint64_t>(FUTEX_TID_MASK));
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

bool has_libc(std::int32_t tid) {
  constexpr std::size_t kMaxMaps = 16U << 20U;
  const std::string maps = read_file(proc_path(tid, "maps"), kMaxMaps).text;
  return maps.find("/libc.so.6") != std::string::npos || maps.find("/libc-2.") != std::string::npos;
}

bool is_in_vfork(std::int32_t pid, std::int32_t parent) {
  for (const std::int32_t tid : list_numbers(proc_path(parent, "task")).numbers) {
    const auto children = parse_pids(read_file(task_path(parent, tid, "children")).text);
    if (std::find(children.begin(), children.end(), pid) == children.end()) continue;
    bool refused = false;
    const auto thread = sample_thread(parent, tid, refused);
    return thread && classify(*thread).kind == WaitClass::kVfork;
  }
  return false;
}

Sharing find_sharing(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers) {
  for (const std::int32_t other : list_numbers("/proc").numbers) {
    if (other == pid) continue;
    const long order = ::syscall(SYS_kcmp, tid, other, KCMP_VM, 0, 0);
    if (order == 0) sharers.push_back(other);
    // EPERM: a process of somebody else; memory is not shared across a change of rights that exec would make.
    // ESRCH: it ended, or is a kernel thread.
    if (order < 0 && errno != EPERM && errno != ESRCH && errno != EACCES) return Sharing::kUnknown;
  }
  if (!sharers.empty()) return Sharing::kShared;
  // Where kcmp is forbidden altogether it fails for every pair: ask for one that must answer.
  const long self = ::syscall(SYS_kcmp, tid, tid, KCMP_VM, 0, 0);
  return self == 0 ? Sharing::kAlone : Sharing::kUnknown;
}

const std::vector<Mapping>& FutexLookup::mappings(std::int32_t tid) {
  if (!mappings_) mappings_ = read_mappings(tid);
  return *mappings_;
}

const abi::Libc& FutexLookup::libc(std::int32_t tid) {
  if (!libc_) libc_ = libc_of(tid, mappings(tid));
  return *libc_;
}

std::optional<SharedPlace> FutexLookup::find_shared(const ThreadSample& thread) {
  return find_shared_place(mappings(thread.tid), classify(thread).word);
}

WaitFacts FutexLookup::look_up(const ThreadSample& thread) {
  WaitFacts facts;
  const WaitTarget target = classify(thread);
  facts.kernel_function = read_file(proc_path(thread.tid, "wchan")).text;
  if (target.kind != WaitClass::kPrivateFutex && target.kind != WaitClass::kPlainFutex) return facts;
  const bool is_private = target.kind == WaitClass::kPrivateFutex;
  facts.mapping = is_private ? WordMapping::kPrivate : kind_of_mapping(mappings(thread.tid), target.word);
  const ProcessMemory memory(thread.tid);
  if (target.priority_inherit) facts.pi_owner = read_futex_owner(memory, target.word);
  const std::uint32_t depth = thread.status.ns_depth;
  const auto lives_here = [&](std::int32_t own) { return numbers_.tid_of(own, depth) != 0; };
  const auto lives = [&](std::int32_t own) { return find_in_namespace_of(thread.tid, own, depth) != 0; };
  const HasTask owner_lives = facts.mapping == WordMapping::kShared ? HasTask(lives) : HasTask(lives_here);
  const auto read = [&](std::uint64_t at, std::size_t size) { return memory.read(at, size); };
  facts.word = identify_word(thread.call, libc(thread.tid).version, read, lives_here, owner_lives);
  if (depth > 1) name_owner(thread, facts);
  if (facts.word.use != model::FutexUse::kUnknown || target.priority_inherit) {
    WordModule module = find_module(thread.tid, mappings(thread.tid), target.word);
    facts.word.module = std::move(module.path);
    facts.word.bias = module.bias;
  }
  if (facts.mapping == WordMapping::kPrivate) name_wakers(pid_, target, facts);
  return facts;
}

// From the numbers of its own pid namespace to ours. One that is gone keeps the only number that it has.
void FutexLookup::name_owner(const ThreadSample& thread, WaitFacts& facts) {
  const std::uint32_t depth = thread.status.ns_depth;
  if (facts.pi_owner) facts.pi_owner = numbers_.tid_of(*facts.pi_owner, depth);
  FutexWord& word = facts.word;
  if (word.owner == 0 || word.owner_is_gone) return;
  const bool is_shared = facts.mapping == WordMapping::kShared && word.use != model::FutexUse::kJoin;
  word.owner =
      is_shared ? find_in_namespace_of(thread.tid, word.owner, depth).value_or(0) : numbers_.tid_of(word.owner, depth);
  if (word.owner == 0) word = FutexWord{};
}

std::optional<std::int32_t> resolve_pidfd(std::int32_t pid, std::int32_t fd) {
  const ReadText text = read_file(proc_path(pid, "fdinfo/" + std::to_string(fd)));
  const auto field = text ? find_field(text.text, "Pid") : std::nullopt;
  const auto target = field ? parse_decimal(*field) : std::nullopt;
  if (!target || *target <= 0) return std::nullopt;
  return static_cast<std::int32_t>(*target);
}

}  // namespace forksight::watch
