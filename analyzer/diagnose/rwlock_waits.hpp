// Finds a thread that waits to read a rwlock behind a waiting writer. The writer waits for the threads that hold the
// lock for reading.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "model/model.hpp"

namespace forksight::rwlocks {

// The threads that wait to read and let a writer go first. A process may have thousands of waiting writers, so each
// wait is visited only once.
class WaitingReaders {
 public:
  explicit WaitingReaders(const model::Model& model) {
    for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
      for (const model::Wait& one : model.processes[id].waits) {
        const bool is_behind_writer =
            one.is_stuck && one.use == model::FutexUse::kRwlockRead && one.owner == 0 && one.readers > 0;
        if (is_behind_writer) first_.try_emplace({id, one.object}, &one);
      }
    }
  }

  // Returns a thread that waits to read and lets `writer` go first, while `writer` waits until the present readers
  // unlock. Null if there is no such thread.
  const model::Wait* find_behind(model::ProcessId id, const model::Wait& writer) const {
    const auto found = first_.find({id, writer.object});
    return found == first_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::pair<model::ProcessId, std::uint64_t>, const model::Wait*> first_;  // by process and object
};

}  // namespace forksight::rwlocks
