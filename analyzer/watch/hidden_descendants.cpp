#include "watch/hidden_descendants.hpp"

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "proc/own_process.hpp"
#include "proc/proc_fs.hpp"
#include "proc/proc_text.hpp"

namespace forksight::watch {
namespace {

constexpr std::size_t kMostAncestors = 1000;
constexpr int kMostLists = 4;

// Programs that become the parent of orphans (PR_SET_CHILD_SUBREAPER). /proc does not show which processes do so. If
// each ancestor counted, the other panes of tmux would be descendants of the run.
constexpr std::array<std::string_view, 5> kSubreapers{"conmon", "forksight", "slurmstepd", "systemd", "tini"};

// Returns the processes that may have become the parent of orphans of the tree: process 1, and ancestors of the tree
// that are known to do so. Also returns forksight's own processes, because a child of the command may be a sibling of
// the command (CLONE_PARENT).
std::set<std::int32_t> find_adopters(const Tree& tree) {
  std::set<std::int32_t> found{1};
  for (const pid_t own : proc::own_processes()) found.insert(own);
  std::set<std::int32_t> known;
  for (const auto& [pid, member] : tree.living()) {
    for (std::int32_t at = member.ppid; at > 1 && known.size() < kMostAncestors && !tree.living().contains(at);) {
      if (!known.insert(at).second) break;
      const auto stat = proc::read_stat(at);
      if (stat && std::ranges::find(kSubreapers, stat->comm) != kSubreapers.end()) found.insert(at);
      at = stat ? stat->ppid : 0;
    }
  }
  return found;
}

std::string read_real_user(std::int32_t pid) {
  const proc::ReadText status = proc::read_file(proc::proc_path(pid, "status"));
  const std::string_view users = proc::find_field(status.text, "Uid").value_or("");
  return std::string(users.substr(0, users.find('\t')));
}

// A thread that has ended is in the control group at the root.
std::string read_control_groups(std::int32_t pid) {
  return proc::read_file(proc::proc_path(proc::find_living_thread(pid), "cgroup")).text;
}

// Tells whether a process of the run has the same value as another process. Reads each process of the run at most once.
class ValueOfMembers {
 public:
  using Read = std::string (*)(std::int32_t pid);
  ValueOfMembers(const Tree& tree, Read read) : tree_(tree), read_(read) {}
  // True also if the value of the process cannot be read.
  bool may_have(std::int32_t pid) {
    const std::string value = read_(pid);
    if (value.empty() || known_.contains(value)) return true;
    for (auto at = next_; at != tree_.living().end(); ++at) {
      next_ = std::next(at);
      if (!at->second.is_outsider && *known_.insert(read_(at->first)).first == value) return true;
    }
    return false;
  }

 private:
  const Tree& tree_;
  Read read_;
  std::map<std::int32_t, Member>::const_iterator next_ = tree_.living().begin();  // the first that was not read
  std::set<std::string> known_;
};

class HiddenSearch {
 public:
  explicit HiddenSearch(const Tree& tree) : tree_(tree) {}
  bool may_descend(const proc::Stat& process) {
    if (!adopters_) adopters_ = find_adopters(tree_);
    std::optional<proc::Stat> stat = process;
    for (std::size_t count = 0; count < kMostAncestors; ++count) {
      // If an ancestor has just ended, the process gets another parent.
      if (!stat) return true;
      // The parent may have forked the process after the tree was last searched for new processes.
      const auto parent = tree_.living().find(stat->ppid);
      if (parent != tree_.living().end() && !parent->second.is_outsider) return true;
      if (stat->start_ticks < tree_.first_start()) return false;
      if (adopters_->contains(stat->ppid)) return users_.may_have(stat->pid) && groups_.may_have(process.pid);
      if (stat->ppid <= 0) return false;
      stat = proc::read_stat(stat->ppid);
    }
    return true;
  }

 private:
  const Tree& tree_;
  std::optional<std::set<std::int32_t>> adopters_;
  ValueOfMembers users_{tree_, read_real_user};
  ValueOfMembers groups_{tree_, read_control_groups};
};

}  // namespace

std::vector<HiddenProcess> find_hidden_descendants(const Tree& tree) {
  std::vector<HiddenProcess> found;
  HiddenSearch search(tree);
  std::set<std::int32_t> seen;
  // A process may fork and end after the processes were listed and before it is read. Then the list lacks its child.
  bool has_gone = true;
  for (int list = 0; list < kMostLists && has_gone; ++list) {
    has_gone = false;
    for (const std::int32_t pid : proc::list_numbers("/proc").numbers) {
      if (tree.living().contains(pid) || proc::is_own_process(pid) || !seen.insert(pid).second) continue;
      auto stat = proc::read_stat(pid);
      has_gone = has_gone || !stat;
      if (!stat || stat->start_ticks < tree.first_start() || proc::is_zombie(*stat)) continue;
      if ((stat->flags & proc::kKernelThread) != 0) continue;
      const std::string links = proc::proc_path(proc::find_living_thread(pid), "fd");
      const proc::ReadOutcome outcome = proc::try_links(links);
      has_gone = has_gone || outcome == proc::ReadOutcome::kGone;
      if (outcome != proc::ReadOutcome::kRefused || !search.may_descend(*stat)) continue;
      const auto status = proc::parse_status(proc::read_file(proc::proc_path(pid, "status")).text);
      has_gone = has_gone || proc::has_ended(pid);
      found.push_back({pid, std::move(stat->comm), status ? status->ns_depth : 0});
    }
  }
  std::erase_if(found, [](const HiddenProcess& one) { return proc::has_ended(one.pid); });
  return found;
}

}  // namespace forksight::watch
