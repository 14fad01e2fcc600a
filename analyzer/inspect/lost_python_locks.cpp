#include "inspect/lost_python_locks.hpp"

#include <algorithm>

#include "inspect/lineage.hpp"

namespace forksight::inspect {
namespace {

// True if the parent shows no taken lock at the address of the child's lock. If the child made the lock after the fork,
// the parent may have something else there. The word before a lock is the type of the object that has the lock, or the
// size of the lock's memory. So the word must be the same in both processes.
bool may_have_been_free(const image::Memory& child, const image::Memory& parent, std::uint64_t lock) {
  // CPython 3.13, Include/internal/pycore_lock.h: _Py_LOCKED and _Py_HAS_PARKED
  constexpr std::uint8_t kLocked = 1;
  constexpr std::uint8_t kHasParked = 2;
  const auto now = parent.value<std::uint8_t>(lock);
  if (!now) return false;
  const bool is_taken = *now == kLocked || *now == (kLocked | kHasParked);
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  return !is_taken || parent.value<std::uint64_t>(lock - kWord) != child.value<std::uint64_t>(lock - kWord);
}

}  // namespace

std::optional<model::Held> find_lost_python_lock(Scene& scene, LostThreads& lost, std::size_t child,
                                                 const StuckCall& call, const model::Fork& fork) {
  if (has_lost_none(scene, child)) return std::nullopt;
  const auto& threads = scene.subjects[child].image.threads;
  const bool has_owner_here = call.owner_pointer != 0 &&
                              std::ranges::find(threads, call.owner_pointer, &image::Thread::fs_base) != threads.end();
  if (has_owner_here) return std::nullopt;
  model::Held held;
  const auto owner = std::ranges::find_if(fork.lost_threads, [&](model::ThreadId id) {
    return call.owner_pointer != 0 && scene.model.threads[id].pointer == call.owner_pointer;
  });
  if (owner == fork.lost_threads.end()) {
    held.holder = lost.other_thread(fork);
    held.may_have_been_free = may_have_been_free(*scene.subjects[child].image.memory,
                                                 *scene.subjects[fork.process].image.memory, call.object);
  } else {
    held.holder = *owner;
    // If the holder still holds the parent's copy of the lock, the holder's present stack shows what it does with the
    // lock.
    constexpr std::uint64_t kOwner = 8;
    const auto now = scene.subjects[fork.process].image.memory->value<std::uint64_t>(call.object + kOwner);
    if (now == call.owner_pointer)
      held.holder_now = scene.facts_of(fork.process, scene.model.threads[*owner].tid).stack;
  }
  held.lock = scene.add_lock(child, call.object, model::LockKind::kPython);
  return held;
}

}  // namespace forksight::inspect
