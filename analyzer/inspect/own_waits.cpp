// Waits of a child's threads for each other, and for what may be anybody's: a fork is blamed only for what its own
// memory proves, or for what nothing else explains.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "inspect/builder.hpp"
#include "inspect/read_lock.hpp"

namespace forksight::inspect {

// The thread of the same process that a thread waits for: it holds the lock, or is to be joined. 0: none, or not known.
std::int32_t Builder::find_own_holder(std::size_t subject, const StuckCall& call) const {
  const image::Image& image = subjects_[subject].image;
  std::int32_t tid = 0;
  if (call.kind == CallKind::kJoin) tid = static_cast<std::int32_t>(call.value);
  const bool is_rwlock = call.kind == CallKind::kRwlockRead || call.kind == CallKind::kRwlockWrite;
  if (call.object != 0 && (call.kind == CallKind::kMutex || is_rwlock)) {
    const auto kind = is_rwlock ? model::LockKind::kRwlockWrite : model::LockKind::kMutex;
    const auto state = read_lock(image, kind, call.object);
    if (state) tid = state->owner;
  }
  tid = image.tid_of(tid);
  return facts_.contains({subject, tid}) ? tid : 0;
}

// Threads that wait for each other in a ring, or one for itself.
bool Builder::has_own_deadlock(std::size_t subject) const {
  return std::ranges::any_of(subjects_[subject].image.threads, [&](const image::Thread& thread) {
    std::set<std::int32_t> passed;
    std::int32_t tid = thread.tid;
    while (tid != 0 && passed.insert(tid).second) tid = find_own_holder(subject, facts_of(subject, tid).call);
    return tid != 0;
  });
}

// Neither the wait nor the object says by whom it was to be ended: it may be an idle worker's.
bool Builder::is_guess(const model::Touch& touch) const {
  if (touch.kind == model::TouchKind::kFutexWait) return true;
  if (touch.kind != model::TouchKind::kLock || !touch.held) return false;
  const model::LockKind kind = model_.locks[model_.forks[touch.fork].held[*touch.held].lock].kind;
  return kind == model::LockKind::kSemaphore || kind == model::LockKind::kRwlockRead;
}

// Several threads of one process may wait for the same lock: that is one thing to be told, of the first of them.
void Builder::drop_repeated(std::size_t first_touch) {
  auto& touches = model_.touches;
  std::set<std::pair<model::TouchKind, std::uint64_t>> told;
  const auto is_repeated = [&](const model::Touch& touch) {
    if (!touch.held) return false;
    const model::Held& held = model_.forks[touch.fork].held[*touch.held];
    return !told.emplace(touch.kind, model_.locks[held.lock].address).second;
  };
  const auto begin = touches.begin() + static_cast<std::ptrdiff_t>(first_touch);
  std::vector<model::Touch> kept;
  std::copy_if(begin, touches.end(), std::back_inserter(kept),
               [&](const model::Touch& touch) { return !is_repeated(touch); });
  touches.erase(begin, touches.end());
  std::ranges::move(kept, std::back_inserter(touches));
}

// Once something proves why the process hangs, its other threads merely wait for that. What its first thread waits for,
// which was there at the fork, counts before what threads wait for that it started itself.
void Builder::settle_touches(std::size_t subject, std::size_t first_touch) {
  drop_repeated(first_touch);
  auto& touches = model_.touches;
  const auto begin = touches.begin() + static_cast<std::ptrdiff_t>(first_touch);
  // Where it is in exit() says by itself nothing of why.
  const bool is_proved = std::any_of(begin, touches.end(), [&](const model::Touch& touch) {
    return touch.kind != model::TouchKind::kExit && !is_guess(touch);
  });
  const bool is_explained = is_proved || has_own_deadlock(subject);
  const std::int32_t first_thread = subjects_[subject].image.pid;
  const bool is_of_first = std::any_of(begin, touches.end(), [&](const model::Touch& touch) {
    return touch.kind != model::TouchKind::kExit && touch.tid == first_thread;
  });
  touches.erase(std::remove_if(begin, touches.end(),
                               [&](const model::Touch& touch) {
                                 return is_guess(touch) && (is_explained || (is_of_first && touch.tid != first_thread));
                               }),
                touches.end());
}

}  // namespace forksight::inspect
