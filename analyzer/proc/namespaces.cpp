#include "proc/namespaces.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "proc/proc_fs.hpp"

namespace forksight::proc {
namespace {

constexpr std::string_view kInitial = "pid:[4026531836]";  // PROC_PID_INIT_INO, include/linux/proc_ns.h

std::optional<std::string> namespace_of(std::int32_t tid) { return read_link(proc_path(tid, "ns/pid")); }

bool exists(std::int32_t tid) { return has_entry(proc_path(tid, "stat")); }

// Returns the numbers of a task in its nested pid namespaces. The number in the outermost namespace, the one of /proc,
// comes first.
std::vector<std::int32_t> numbers_of(const std::string& folder) {
  const ReadText status = read_file(folder + "/status");
  return parse_pids(status ? find_field(status.text, "NSpid").value_or("") : std::string_view());
}

}  // namespace

bool is_in_initial_pid_namespace() { return read_link("/proc/self/ns/pid") == kInitial; }

bool are_in_namespace_of(std::int32_t tid, const std::vector<std::int32_t>& pids) {
  const auto own = read_link(proc_path(tid, "ns/pid"));
  return own && std::ranges::all_of(pids, [&](std::int32_t pid) { return read_link(proc_path(pid, "ns/pid")) == own; });
}

std::optional<std::string> find_foreign_proc() {
  const auto self = read_link("/proc/self");
  if (self == std::to_string(::getpid())) return std::nullopt;
  if (!self && ::access("/proc", F_OK) != 0)
    return "there is no /proc here, but forksight needs /proc to examine processes: mount it first (mount -t proc proc "
           "/proc)";
  return "/proc shows another pid namespace than this one: mount the right /proc first (mount -t proc proc /proc, or "
         "start with unshare --mount-proc), or run forksight outside of this namespace";
}

// The child of a process is in the same pid namespace, or in one that is nested deeper. So the depths show whether the
// namespaces differ.
bool has_numbers_of_two_namespaces(std::int32_t pid) {
  constexpr int kMostAncestors = 64;
  for (int steps = 0; steps < kMostAncestors; ++steps) {
    const auto stat = read_stat(pid);
    if (!stat || (stat->flags & kForkedWithoutExec) == 0) return false;
    const std::vector<std::int32_t> own = numbers_of(proc_path(pid, "."));
    if (own.empty()) return false;
    // The first process of a namespace has a parent outside of it. So has a process that does not see its parent.
    if (own.back() == 1 || stat->ppid == 0) return true;
    const std::size_t depth_of_parent = numbers_of(proc_path(stat->ppid, ".")).size();
    if (depth_of_parent != 0 && depth_of_parent != own.size()) return true;
    pid = stat->ppid;
  }
  return false;
}

std::int32_t OwnNumbers::tid_of(std::int32_t own, std::uint32_t depth) {
  if (depth <= 1) return has_entry(task_path(pid_, own, "stat")) ? own : 0;
  if (!tids_) {
    tids_.emplace();
    for (const std::int32_t tid : list_numbers(proc_path(pid_, "task")).numbers) {
      const auto numbers = numbers_of(task_path(pid_, tid, "."));
      if (numbers.size() == depth) tids_->emplace(numbers.back(), tid);
    }
  }
  const auto at = tids_->find(own);
  return at == tids_->end() ? 0 : at->second;
}

std::optional<std::int32_t> find_in_namespace_of(std::int32_t tid, std::int32_t own, std::uint32_t depth) {
  if (depth <= 1) return exists(own) ? own : 0;
  const auto wanted = namespace_of(tid);
  if (!wanted) return std::nullopt;
  for (const std::int32_t pid : list_numbers("/proc").numbers) {
    const std::vector<std::int32_t> numbers = numbers_of(proc_path(pid, "."));
    if (numbers.size() < depth) continue;  // the process has no number in a namespace at that depth
    const auto its = namespace_of(pid);
    if (!its) return std::nullopt;
    if (its != wanted) continue;
    if (const std::int32_t found = OwnNumbers(pid).tid_of(own, depth); found != 0) return found;
  }
  return 0;
}

bool is_called(std::int32_t pid, std::int32_t own, std::uint32_t depth) {
  if (depth <= 1) return pid == own;
  const std::vector<std::int32_t> numbers = numbers_of(proc_path(pid, "."));
  return numbers.size() >= depth && numbers[depth - 1] == own;
}

std::int32_t find_called(std::int32_t own) {
  std::int32_t found = 0;
  for (const std::int32_t pid : list_numbers("/proc").numbers) {
    const std::vector<std::int32_t> numbers = numbers_of(proc_path(pid, "."));
    if (numbers.size() < 2 || numbers.back() != own) continue;
    if (found != 0) return 0;
    found = pid;
  }
  return found;
}

}  // namespace forksight::proc
