// The threads that a fork left behind, where no more is known of them than what the child's memory tells.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "inspect/scene.hpp"

namespace forksight::inspect {

class LostThreads {
 public:
  explicit LostThreads(Scene& scene) : scene_(scene) {}

  // The threads of a parent that is not there, as the child's memory has them.
  void add_of_absent_parent(model::Fork& fork);
  // The one thread of which this is so; of several it is not known which.
  std::optional<model::ThreadId> find_only(const model::Fork& fork,
                                           const std::function<bool(const model::Thread&)>& is_it) const;
  // One of which nothing is known, unless there is only one that it can be.
  model::ThreadId other_thread(const model::Fork& fork);
  model::ThreadId add_lost_owner(std::int32_t tid, const model::Fork& fork);
  // The forking thread may be the owner: its tid is not known.
  bool may_be_forking_thread(std::size_t child, std::int32_t owner, const model::Fork& fork) const;

 private:
  Scene& scene_;
  std::map<std::size_t, model::ThreadId> only_lost_;  // by absent subject, where only one was lost
};

}  // namespace forksight::inspect
