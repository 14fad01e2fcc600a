#include "command/why_targets.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "image/refusal.hpp"
#include "model/base_name.hpp"
#include "proc/own_process.hpp"
#include "proc/proc_text.hpp"

namespace forksight {
namespace {

constexpr std::size_t kMostOfName = 15;  // bytes of a program's name that the kernel keeps

std::optional<std::int32_t> parse_id(const std::string& word) {
  std::int32_t id = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc{} || end != word.data() + word.size() || id <= 0) return std::nullopt;
  return id;
}

// Finds this process and its ancestors. A user who asks for a name or for all processes does not mean these processes.
std::set<std::int32_t> find_self_and_ancestors() {
  std::set<std::int32_t> found{::getpid()};
  for (auto stat = proc::read_stat(::getpid()); stat && stat->ppid > 0 && found.insert(stat->ppid).second;)
    stat = proc::read_stat(stat->ppid);
  return found;
}

bool is_ours(const std::string& status) {
  if (proc::caller() == 0) return true;
  const auto ids = proc::find_field(status, "Uid");
  const auto user = ids ? proc::parse_decimal(ids->substr(0, ids->find_first_of("\t "))) : std::nullopt;
  return user == static_cast<std::int64_t>(proc::caller());
}

// True if `name` is the name of the process, of its program, or of the script that an interpreter runs, as in `python3
// /usr/bin/gunicorn app`.
bool has_name(std::int32_t pid, const proc::Stat& stat, const std::string& name) {
  if (stat.comm == name.substr(0, kMostOfName) || model::base_name(proc::read_exe(pid)) == name) return true;
  const std::vector<std::string> words = proc::read_cmdline(pid);
  const auto script = std::find_if(words.begin() + (words.empty() ? 0 : 1), words.end(),
                                   [](const std::string& word) { return !word.starts_with('-'); });
  return (!words.empty() && model::base_name(words.front()) == name) ||
         (script != words.end() && model::base_name(*script) == name);
}

enum class Owner { kUser, kAnyone };

std::vector<proc::ProcessKey> find_processes(Owner owner,
                                             const std::function<bool(std::int32_t, const proc::Stat&)>& is_meant) {
  const std::set<std::int32_t> left_out = find_self_and_ancestors();
  std::vector<proc::ProcessKey> found;
  for (const std::int32_t pid : proc::list_numbers("/proc").numbers) {
    const auto stat = left_out.contains(pid) ? std::nullopt : proc::read_stat(pid);
    if (!stat || stat->state == 'Z') continue;
    if (owner == Owner::kUser && !is_ours(proc::read_file(proc::proc_path(pid, "status")).text)) continue;
    if (is_meant(pid, *stat) && !image::find_obstacle(pid)) found.push_back({pid, stat->start_ticks});
  }
  return found;
}

// Tells which processes descend from a chosen process. Looks at each process only once, because a user may have
// thousands of processes, each the child of the one before.
class Descent {
 public:
  explicit Descent(const std::vector<proc::ProcessKey>& chosen) {
    for (const proc::ProcessKey& key : chosen) chosen_.insert(key.pid);
  }

  bool is_below_chosen(std::int32_t pid) {
    std::vector<std::int32_t> chain;
    bool is_below = false;
    for (std::int32_t at = pid;;) {
      // Each process of the chain is known from now on, at first with `false`. So the loop ends even if pids are used
      // again meanwhile and the parents form a ring.
      const auto [known, is_new] = known_.try_emplace(at, false);
      is_below = known->second;
      if (!is_new) break;
      chain.push_back(at);
      const auto stat = proc::read_stat(at);
      is_below = stat && chosen_.contains(stat->ppid);
      if (!stat || is_below) break;
      at = stat->ppid;
    }
    for (const std::int32_t one : chain) known_[one] = is_below;
    return is_below;
  }

 private:
  std::unordered_set<std::int32_t> chosen_;
  std::unordered_map<std::int32_t, bool> known_;
};

// Leaves out each process that descends from another process of `keys`, because both are examined together. A process
// that occurs several times in `keys` occurs once in the result.
std::vector<proc::ProcessKey> find_roots(const std::vector<proc::ProcessKey>& keys) {
  Descent descent(keys);
  std::set<std::pair<std::int32_t, std::uint64_t>> listed;
  std::vector<proc::ProcessKey> roots;
  for (const proc::ProcessKey& key : keys) {
    const bool is_new = listed.emplace(key.pid, key.start_ticks).second;
    if (is_new && !descent.is_below_chosen(key.pid)) roots.push_back(key);
  }
  return roots;
}

// Returns the pid of the process that the thread `id` belongs to; `id` itself if there is no such thread.
std::int32_t find_process_of(std::int32_t id) {
  const auto status = proc::read_file(proc::proc_path(id, "status"));
  const auto leader = proc::find_field(status.text, "Tgid");
  return leader ? static_cast<std::int32_t>(proc::parse_decimal(*leader).value_or(id)) : id;
}

// Says that the user has no process of that name. `others`: processes of other users that have it.
std::string explain_unknown_name(const std::string& name, const std::vector<proc::ProcessKey>& others) {
  if (!others.empty()) {
    return fmt::format("{}: only {} that name; {}", name,
                       others.size() == 1 ? "a process of another user has" : "processes of other users have",
                       image::explain_refusal(others.front().pid));
  }
  return fmt::format("{}: no process {} that name; `ps -e` lists the names", name,
                     proc::caller() == 0 ? "has" : "of yours has");
}

}  // namespace

Result<std::vector<proc::ProcessKey>> find_targets(const std::vector<std::string>& words) {
  std::vector<proc::ProcessKey> found;
  for (const std::string& word : words) {
    if (const auto id = parse_id(word)) {
      const std::int32_t pid = find_process_of(*id);
      if (auto obstacle = image::find_obstacle(pid)) return Error{std::move(*obstacle)};
      const auto stat = proc::read_stat(pid);
      found.push_back({pid, stat ? stat->start_ticks : 0});
      continue;
    }
    const auto is_named = [&](std::int32_t pid, const proc::Stat& stat) { return has_name(pid, stat, word); };
    const auto named = find_processes(Owner::kUser, is_named);
    if (named.empty()) return Error{explain_unknown_name(word, find_processes(Owner::kAnyone, is_named))};
    found.insert(found.end(), named.begin(), named.end());
  }
  return find_roots(found);
}

std::vector<proc::ProcessKey> find_all_targets() {
  return find_roots(find_processes(Owner::kUser, [](std::int32_t, const proc::Stat&) { return true; }));
}

}  // namespace forksight
