#include "watch/sharers.hpp"

#include <algorithm>

#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"
#include "proc/wait_class.hpp"

namespace forksight::watch {
namespace {

// True if a thread of `parent` waits in vfork() for `child`.
bool waits_in_vfork(std::int32_t parent, std::int32_t child) {
  for (const std::int32_t tid : proc::list_numbers(proc::proc_path(parent, "task")).numbers) {
    const auto children = proc::parse_pids(proc::read_file(proc::task_path(parent, tid, "children")).text);
    if (std::ranges::find(children, child) == children.end()) continue;
    bool refused = false;
    const auto thread = proc::sample_thread(parent, tid, refused);
    if (thread && proc::classify(*thread).kind == proc::WaitClass::kVfork) return true;
  }
  return false;
}

}  // namespace

std::vector<std::int32_t> find_other_users(std::int32_t pid, const std::vector<std::int32_t>& sharers) {
  std::vector<std::int32_t> others;
  for (const std::int32_t sharer : sharers) {
    if (!waits_in_vfork(sharer, pid) && !waits_in_vfork(pid, sharer)) others.push_back(sharer);
  }
  return others;
}

void add_sharers(std::int32_t pid, const std::vector<std::int32_t>& sharers, std::vector<Waker>& wakers) {
  for (const std::int32_t sharer : sharers) {
    for (const std::int32_t tid : proc::list_numbers(proc::proc_path(sharer, "task")).numbers) {
      const auto children = proc::parse_pids(proc::read_file(proc::task_path(sharer, tid, "children")).text);
      bool refused = false;
      const bool is_parent = std::find(children.begin(), children.end(), pid) != children.end();
      const auto thread = is_parent ? proc::sample_thread(sharer, tid, refused) : std::nullopt;
      if (thread && proc::classify(*thread).kind == proc::WaitClass::kVfork) continue;
      wakers.push_back({sharer, "shared memory", tid});
    }
  }
}

void find_owner_among(const std::vector<std::int32_t>& sharers, WaitFacts& facts) {
  for (const std::int32_t sharer : sharers) {
    if (!proc::has_entry(proc::task_path(sharer, facts.word.owner, "stat"))) continue;
    facts.word.owner_is_gone = false;
    facts.wakers = {{sharer, facts.word.use == model::FutexUse::kMutex ? "mutex" : "rwlock", facts.word.owner}};
    return;
  }
}

}  // namespace forksight::watch
