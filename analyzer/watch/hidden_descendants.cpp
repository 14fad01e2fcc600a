#include "watch/hidden_descendants.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
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

// Returns process 1, and the ancestors of the tree that are in another session than their child. These adopt orphans of
// the tree, if any process does. A shell that has started the job does not adopt, but it is in the job's session.
std::set<std::int32_t> find_adopters(const Tree& tree) {
  std::set<std::int32_t> found{1};
  std::set<std::int32_t> known;
  for (const auto& [pid, member] : tree.living()) {
    std::int32_t child = pid;
    for (std::int32_t at = member.ppid; at > 1 && known.size() < kMostAncestors && !tree.living().contains(at);) {
      if (::getsid(at) != ::getsid(child)) found.insert(at);
      if (!known.insert(at).second) break;
      const auto stat = proc::read_stat(at);
      child = at;
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

std::string read_control_groups(std::int32_t pid) { return proc::read_file(proc::proc_path(pid, "cgroup")).text; }

// Tells whether a member of the tree has the same value as a process. Reads the members only until one has it.
class ValueOfMembers {
 public:
  using Read = std::string (*)(std::int32_t pid);
  ValueOfMembers(const Tree& tree, Read read) : tree_(tree), read_(read) {}
  // True also if the value of the process cannot be read.
  bool may_have(std::int32_t pid) {
    const std::string value = read_(pid);
    if (value.empty() || known_.contains(value)) return true;
    return std::ranges::any_of(tree_.living(),
                               [&](const auto& entry) { return *known_.insert(read_(entry.first)).first == value; });
  }

 private:
  const Tree& tree_;
  Read read_;
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
  for (const std::int32_t pid : proc::list_numbers("/proc").numbers) {
    if (tree.living().contains(pid) || proc::is_own_process(pid)) continue;
    auto stat = proc::read_stat(pid);
    if (!stat || stat->start_ticks < tree.first_start() || proc::is_zombie(*stat)) continue;
    if ((stat->flags & proc::kKernelThread) != 0) continue;
    const std::string links = proc::proc_path(proc::find_living_thread(pid), "fd");
    if (proc::try_links(links) != proc::ReadOutcome::kRefused || proc::has_ended(pid)) continue;
    if (search.may_descend(*stat)) found.push_back({pid, std::move(stat->comm)});
  }
  return found;
}

}  // namespace forksight::watch
