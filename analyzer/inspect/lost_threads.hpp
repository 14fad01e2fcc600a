// The threads that a fork left behind, where no more is known of them than what the child's memory tells.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "inspect/lost_pthreads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

class LostThreads {
 public:
  explicit LostThreads(Scene& scene) : scene_(scene) {}

  // The threads of a parent that is not there, as the child's memory has them.
  void add_of_absent_parent(model::Fork& fork);
  // Threads that the parent had at the fork, and has no more: the child's memory has them still.
  void add_ended_since(model::Fork& fork);
  // The one thread of which this is so; of several it is not known which.
  std::optional<model::ThreadId> find_only(const model::Fork& fork,
                                           const std::function<bool(const model::Thread&)>& is_it) const;
  // One of which nothing is known, unless there is only one that it can be.
  model::ThreadId other_thread(const model::Fork& fork);
  model::ThreadId add_lost_owner(std::int32_t tid, const model::Fork& fork);

 private:
  model::ThreadId add(const model::Fork& fork, const LostThread& from);
  // All that its memory tells of was lost at the one fork since the program's start.
  bool is_of_first_fork(std::size_t child, const LostPthreads& lost);
  // The same of the one fork by _Fork() or clone(), which libc does not count.
  bool is_of_first_bypass(const model::Fork& fork, const LostPthreads& lost);

  Scene& scene_;
  std::map<std::size_t, model::ThreadId> only_lost_;  // by absent subject, where only one was lost
};

}  // namespace forksight::inspect
