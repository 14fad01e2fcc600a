#include "proc/memory_sharers.hpp"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "proc/proc_fs.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {
namespace {

// The answers of kcmp() (Linux, kernel/kcmp.c). kcmp() tells where one memory comes in an arbitrary but fixed order of
// all memories.
constexpr long kSame = 0;
constexpr long kBefore = 1;
constexpr long kAfter = 2;

long compare_memory(std::int32_t tid, std::int32_t other) { return ::syscall(SYS_kcmp, tid, other, KCMP_VM, 0, 0); }

constexpr std::size_t kMostAncestors = 1000;

ReadText read_arguments(std::int32_t tid) { return read_file(proc_path(tid, "cmdline")); }

}  // namespace

MemorySharers::MemorySharers(const std::optional<ProcessKey>& root) : root_(root) {
  for (const std::int32_t pid : list_numbers("/proc").numbers) {
    char name = 0;
    std::int32_t tid = pid;
    // Neither a kernel thread nor a first thread that has ended has a memory and a program.
    if (::readlink(proc_path(pid, "exe").c_str(), &name, 1) < 0 && errno == ENOENT) {
      if (::getpgid(pid) == 0) continue;  // kernel threads have no process group
      tid = find_living_thread(pid);
      if (tid == pid) continue;
    }
    all_.push_back({pid, tid});
  }
}

void MemorySharers::remove_first(std::size_t group) {
  groups_[group].erase(groups_[group].begin());
  if (groups_[group].empty()) groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(group));
}

bool MemorySharers::insert(const Process& process) {
  std::size_t low = 0;
  std::size_t high = groups_.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const Process first = groups_[middle].front();
    const long order = compare_memory(process.tid, first.tid);
    const bool is_refused = order < 0 && errno != ESRCH;
    if (order == kSame) {
      groups_[middle].push_back(process);
      return true;
    }
    if (order > kAfter) return false;
    if (order == kBefore) high = middle;
    if (order == kAfter) low = middle + 1;
    if (order >= 0) continue;
    // One of the two processes has just ended, or has just got other rights.
    if (compare_memory(process.tid, process.tid) != kSame) {
      if (errno != ESRCH) uncompared_.push_back(process);
      return true;
    }
    if (is_refused) uncompared_.push_back(first);
    remove_first(middle);
    low = 0;
    high = groups_.size();
  }
  groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(low), Group{process});
  return true;
}

bool MemorySharers::is_still_one_memory(Group& group) const {
  for (std::size_t at = 1; at < group.size();) {
    const long order = compare_memory(group.front().tid, group[at].tid);
    if (order > 0) return false;
    if (order == kSame) {
      ++at;
    } else if (errno != ESRCH) {
      return false;
    } else if (compare_memory(group[at].tid, group[at].tid) != kSame) {
      group.erase(group.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      group.erase(group.begin());
      at = 1;
    }
  }
  return true;
}

bool MemorySharers::is_still_in_order() {
  for (Group& group : groups_) {
    if (!is_still_one_memory(group)) return false;
  }
  for (std::size_t at = 0; at + 1 < groups_.size();) {
    const long order = compare_memory(groups_[at].front().tid, groups_[at + 1].front().tid);
    if (order == kBefore) {
      ++at;
      continue;
    }
    if (order >= 0 || errno != ESRCH) return false;
    const bool is_first = compare_memory(groups_[at].front().tid, groups_[at].front().tid) != kSame;
    remove_first(is_first ? at : at + 1);
    if (is_first && at > 0) --at;
  }
  return true;
}

void MemorySharers::group() {
  has_grouped_ = true;
  bool is_told = true;
  for (const Process& process : all_) {
    if (compare_memory(process.tid, process.tid) == kSame) {
      is_told = is_told && insert(process);
    } else if (errno != ESRCH) {
      uncompared_.push_back(process);
    }
  }
  if (!is_told || !is_still_in_order()) groups_.clear();
  for (std::size_t at = 0; at < groups_.size(); ++at) {
    for (const Process& process : groups_[at]) group_of_.emplace(process.pid, at);
  }
}

const std::optional<Stat>& MemorySharers::stat_of(std::int32_t pid) {
  const auto [found, is_new] = stats_.try_emplace(pid);
  if (is_new) found->second = read_stat(pid);
  return found->second;
}

// False if the process is older than `first`. Then it is no descendant of it. Its present ancestors prove nothing: if a
// parent ends, a subreaper or the first process of a pid namespace becomes the parent.
bool MemorySharers::may_descend_from(const ProcessKey& first, std::int32_t process) {
  const auto& stat = stat_of(process);
  return !stat || stat->start_ticks >= first.start_ticks;
}

// exec() gives a process a memory of its own. Only clone() shares it later, and the new process has not called exec.
bool MemorySharers::calls_exec(std::int32_t pid) {
  const auto& stat = stat_of(pid);
  return stat && (stat->flags & kForkedWithoutExec) == 0;
}

// Returns a process that did not begin with the memory of another process, and whose descendants include all processes
// that share the memory of process `pid`, except itself. nullopt: none is known.
std::optional<ProcessKey> MemorySharers::find_first_owner(std::int32_t pid) {
  if (calls_exec(pid)) return ProcessKey{pid, stat_of(pid)->start_ticks};
  // Without a line of living parents up to the root, the process may be no descendant of the root.
  std::int32_t ancestor = pid;
  for (std::size_t count = 0; root_ && count < kMostAncestors; ++count) {
    const auto& stat = stat_of(ancestor);
    if (!stat) break;
    if (ProcessKey{ancestor, stat->start_ticks} == *root_) return root_;
    ancestor = stat->ppid;
  }
  return std::nullopt;
}

// For two processes whose memory the kernel refuses to compare: false if they cannot share it, because of what is known
// about their calls of exec and their ages. `first`: find_first_owner(pid).
bool MemorySharers::may_be_related(std::int32_t pid, const std::optional<ProcessKey>& first, std::int32_t other) {
  const auto& stat = stat_of(other);
  if (stat && (stat->flags & kKernelThread) != 0) return false;
  if (calls_exec(other)) {
    if (first && first->pid == pid) return false;  // both have called exec
    if (!may_descend_from({other, stat->start_ticks}, pid)) return false;
  }
  return !first || may_descend_from(*first, other);
}

// /proc shows the peak to every user.
MemorySharers::Peak MemorySharers::read_peak(std::int32_t tid) {
  const ReadText status = read_file(proc_path(tid, "status"));
  if (!status) return {status.outcome == ReadOutcome::kGone, 0};
  std::string_view field = find_field(status.text, "VmPeak").value_or("0");
  field = field.substr(0, field.find(' '));
  return {true, static_cast<std::uint64_t>(parse_decimal(field).value_or(0))};
}

void MemorySharers::read_peaks() {
  for (std::map<std::int32_t, Peak>& peaks : peaks_) {
    for (const Process& process : all_) peaks.emplace(process.pid, read_peak(process.tid));
  }
}

// For two processes whose memory the kernel refuses to compare: false if their peaks show that they do not share it.
// The peak belongs to the memory and never shrinks. So if two processes share their memory, the peak of one of them is
// at least the earlier peak of the other one, and at most its later peak. nullopt: a peak cannot be read.
std::optional<bool> MemorySharers::may_have_one_peak(std::int32_t pid, std::int32_t tid, const Process& other) {
  if (peaks_.front().empty()) read_peaks();
  Peak before;
  Peak peak;
  Peak after;
  if (tid == pid && peaks_.front().contains(pid)) {
    // The first reading of all processes was over when the second one began.
    before = peaks_[0].at(pid);
    peak = peaks_[1].at(other.pid);
    after = peaks_[2].at(pid);
  } else {
    before = read_peak(tid);
    peak = read_peak(other.tid);
    after = read_peak(tid);
  }
  if (!peak.is_readable || before.kilobytes == 0 || after.kilobytes == 0) return std::nullopt;
  return before.kilobytes <= peak.kilobytes && peak.kilobytes <= after.kilobytes;
}

// Removes the processes that cannot share the memory of process `pid`. The arguments are in the memory, and /proc shows
// them to every user. Those of process `pid` are read twice, because a program may change them.
std::vector<MemorySharers::Process> MemorySharers::keep_possible(std::int32_t pid, std::int32_t tid,
                                                                 const std::vector<Process>& refused) {
  std::vector<Process> possible;
  std::vector<ReadText> arguments;
  if (refused.empty()) return possible;
  const ReadText before = read_arguments(tid);
  const auto first = find_first_owner(pid);
  for (const Process& other : refused) {
    if (!may_be_related(pid, first, other.pid)) continue;
    possible.push_back(other);
    arguments.push_back(read_arguments(other.tid));
  }
  const ReadText after = read_arguments(tid);
  if (!before || !after || before.text != after.text) return possible;
  std::vector<Process> kept;
  for (std::size_t at = 0; at < possible.size(); ++at) {
    const bool is_known = arguments[at] && !arguments[at].text.empty() && !before.text.empty();
    if (!is_known || arguments[at].text == before.text) kept.push_back(possible[at]);
  }
  return kept;
}

Sharing MemorySharers::find(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers) {
  if (!has_grouped_) group();
  std::vector<std::int32_t> found;
  bool is_hidden = false;  // for some process it is not known whether it shares the memory
  // Processes that the kernel refuses to compare. Such a process may share the memory, and may have changed its rights
  // since it was made.
  std::vector<Process> refused;
  const auto group = group_of_.find(pid);
  if (group != group_of_.end()) {
    for (const Process& other : groups_[group->second]) {
      if (other.pid != pid) found.push_back(other.pid);
    }
    refused = uncompared_;
  } else {
    for (const Process& other : all_) {
      if (other.pid == pid) continue;
      const long order = compare_memory(tid, other.tid);
      if (order == kSame) found.push_back(other.pid);
      if (order >= 0 || errno == ESRCH) continue;  // ESRCH: the other process has ended
      if (errno != EPERM && errno != EACCES) return Sharing::kUnknown;
      refused.push_back(other);
    }
  }
  // If kcmp is forbidden, or the thread has ended, kcmp fails for every pair. So this function compares the thread with
  // itself. This must succeed.
  if (compare_memory(tid, tid) != kSame) return Sharing::kUnknown;
  for (const Process& other : keep_possible(pid, tid, refused)) {
    const auto perhaps = may_have_one_peak(pid, tid, other);
    is_hidden = is_hidden || !perhaps;
    if (perhaps != true) continue;
    found.push_back(other.pid);
    possible_sharers_.emplace(pid, other.pid);
  }
  sharers.insert(sharers.end(), found.begin(), found.end());
  if (is_hidden && found.empty()) return Sharing::kUnknown;
  return found.empty() ? Sharing::kAlone : Sharing::kShared;
}

std::int32_t MemorySharers::possible_sharer(std::int32_t pid) const {
  const auto found = possible_sharers_.find(pid);
  return found == possible_sharers_.end() ? 0 : found->second;
}

}  // namespace forksight::proc
