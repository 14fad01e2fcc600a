#include "watch/sharers.hpp"

#include <unistd.h>

#include <algorithm>

#include "watch/proc_fs.hpp"
#include "watch/sampler.hpp"
#include "watch/wait_class.hpp"

namespace forksight::watch {

void add_sharers(std::int32_t pid, const std::vector<std::int32_t>& sharers, std::vector<Waker>& wakers) {
  for (const std::int32_t sharer : sharers) {
    for (const std::int32_t tid : list_numbers(proc_path(sharer, "task")).numbers) {
      const auto children = parse_pids(read_file(task_path(sharer, tid, "children")).text);
      bool refused = false;
      const bool is_parent = std::find(children.begin(), children.end(), pid) != children.end();
      const auto thread = is_parent ? sample_thread(sharer, tid, refused) : std::nullopt;
      if (thread && classify(*thread).kind == WaitClass::kVfork) continue;
      wakers.push_back({sharer, "shared memory", tid});
    }
  }
}

void find_owner_among(const std::vector<std::int32_t>& sharers, WaitFacts& facts) {
  for (const std::int32_t sharer : sharers) {
    if (::access(task_path(sharer, facts.word.owner, "stat").c_str(), F_OK) != 0) continue;
    facts.word.owner_is_gone = false;
    facts.wakers = {{sharer, facts.word.use == model::FutexUse::kMutex ? "mutex" : "rwlock", facts.word.owner}};
    return;
  }
}

}  // namespace forksight::watch
