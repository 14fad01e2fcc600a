// Finds the threads that a fork left behind and that only the child's memory still shows.
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

  // Adds the threads of an absent parent, as the child's memory has them.
  void add_of_absent_parent(model::Fork& fork);
  // Adds threads that the parent had at the fork and no longer has: the child's memory still has them.
  void add_ended_since(model::Fork& fork);
  // Returns the only lost thread for which the condition holds; nullopt if it holds for none, or for several.
  std::optional<model::ThreadId> find_only(const model::Fork& fork,
                                           const std::function<bool(const model::Thread&)>& is_it) const;
  // If the parent is absent, and the child's memory shows one fork and one lost thread, returns that thread. Otherwise
  // adds a thread about which nothing is known, and returns the new thread.
  model::ThreadId other_thread(const model::Fork& fork);
  model::ThreadId add_lost_owner(std::int32_t tid, const model::Fork& fork);

 private:
  model::ThreadId add(const model::Fork& fork, const LostThread& from);
  // True if there was only one fork since the start of the program. Then all lost threads in the child's memory were
  // lost at that fork.
  bool has_only_one_fork(std::size_t child, const LostPthreads& lost);
  // True if the only fork since the start of the program was made by _Fork() or clone(). libc does not count these
  // forks.
  bool has_only_one_bypass(const model::Fork& fork, const LostPthreads& lost);

  Scene& scene_;
  std::map<std::size_t, model::ThreadId> only_lost_;  // the lost thread, by absent parent, if the fork lost only one
};

}  // namespace forksight::inspect
