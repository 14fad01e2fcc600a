#include "watch/hidden_descendants.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "proc/own_process.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::watch {
namespace {

constexpr std::size_t kMostAncestors = 1000;

// The processes that adopt orphans of the tree: process 1, and all ancestors of the tree. Not all ancestors adopt, but
// /proc does not show which ones do.
std::set<std::int32_t> find_adopters(const Tree& tree) {
  std::set<std::int32_t> found{1};
  for (const auto& [pid, member] : tree.living()) {
    std::int32_t ancestor = member.ppid;
    while (ancestor > 1 && found.size() < kMostAncestors && !tree.living().contains(ancestor)) {
      if (!found.insert(ancestor).second) break;
      const auto stat = proc::read_stat(ancestor);
      ancestor = stat ? stat->ppid : 0;
    }
  }
  return found;
}

// True if all processes from `process` up to a process that adopts orphans are not older than the tree.
bool may_be_orphan(const proc::Stat& process, const Tree& tree, const std::set<std::int32_t>& adopters) {
  std::optional<proc::Stat> stat = process;
  for (std::size_t count = 0; count < kMostAncestors; ++count) {
    if (!stat) return true;  // it has just ended, and its children get another parent
    if (stat->start_ticks < tree.first_start()) return false;
    if (adopters.contains(stat->ppid)) return true;
    if (stat->ppid <= 0) return false;
    stat = proc::read_stat(stat->ppid);
  }
  return true;
}

std::string read_control_groups(std::int32_t pid) { return proc::read_file(proc::proc_path(pid, "cgroup")).text; }

// True if a member of the tree is in the same control groups. True if they cannot be read.
bool may_share_groups(std::int32_t pid, const Tree& tree, std::set<std::string>& known) {
  const std::string groups = read_control_groups(pid);
  if (groups.empty() || known.contains(groups)) return true;
  return std::ranges::any_of(tree.living(), [&](const auto& entry) {
    return *known.insert(read_control_groups(entry.first)).first == groups;
  });
}

}  // namespace

std::vector<HiddenProcess> find_hidden_descendants(const Tree& tree) {
  std::vector<HiddenProcess> found;
  std::optional<std::set<std::int32_t>> adopters;
  std::set<std::string> groups;
  for (const std::int32_t pid : proc::list_numbers("/proc").numbers) {
    if (tree.living().contains(pid) || proc::is_own_process(pid)) continue;
    auto stat = proc::read_stat(pid);
    if (!stat || stat->start_ticks < tree.first_start() || (stat->flags & proc::kKernelThread) != 0) continue;
    const std::string links = proc::proc_path(proc::find_living_thread(pid), "fd");
    if (proc::try_links(links) != proc::ReadOutcome::kRefused || proc::has_ended(pid)) continue;
    if (!adopters) adopters = find_adopters(tree);
    if (!may_be_orphan(*stat, tree, *adopters) || !may_share_groups(pid, tree, groups)) continue;
    found.push_back({pid, std::move(stat->comm)});
  }
  return found;
}

}  // namespace forksight::watch
