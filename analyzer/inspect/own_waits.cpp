#include "inspect/own_waits.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "inspect/read_lock.hpp"

namespace forksight::inspect {

std::int32_t find_own_holder(const Scene& scene, std::size_t subject, const StuckCall& call) {
  const image::Image& image = scene.subjects[subject].image;
  std::int32_t tid = 0;
  if (call.kind == CallKind::kJoin) tid = static_cast<std::int32_t>(call.value);
  const bool is_rwlock = call.kind == CallKind::kRwlockRead || call.kind == CallKind::kRwlockWrite;
  if (call.object != 0 && (call.kind == CallKind::kMutex || is_rwlock)) {
    const auto kind = is_rwlock ? model::LockKind::kRwlockWrite : model::LockKind::kMutex;
    const auto state = read_lock(image, kind, call.object);
    if (state) tid = state->owner;
  }
  tid = image.tid_of(tid);
  if (image.has_two_numberings) return 0;
  if (scene.find_facts(subject, tid) != nullptr) return tid;
  // The first thread of a child may hold a plain mutex since before the fork: see name_inherited_owners().
  const auto& waits = scene.model.processes[subject].waits;
  const auto inherited = std::ranges::find_if(waits, [&](const model::Wait& wait) {
    return wait.is_inherited && call.kind == CallKind::kMutex && wait.object == call.object;
  });
  return inherited == waits.end() ? 0 : inherited->owner;
}

namespace {

// True if threads of the process wait for each other in a ring, or if a thread waits for itself.
bool has_own_deadlock(const Scene& scene, std::size_t subject) {
  return std::ranges::any_of(scene.subjects[subject].image.threads, [&](const image::Thread& thread) {
    std::set<std::int32_t> passed;
    std::int32_t tid = thread.tid;
    while (tid != 0 && passed.insert(tid).second)
      tid = find_own_holder(scene, subject, scene.facts_of(subject, tid).call);
    return tid != 0;
  });
}

// True if neither the wait nor the object shows which thread should have ended the wait. The waiting thread may be an
// idle worker.
bool is_guess(const Scene& scene, const model::Touch& touch) {
  if (touch.kind == model::TouchKind::kFutexWait) return true;
  if (touch.kind != model::TouchKind::kLock || !touch.held) return false;
  const model::Held& held = scene.model.forks[touch.fork].held[*touch.held];
  const model::LockKind kind = scene.model.locks[held.lock].kind;
  const bool is_of_python = kind == model::LockKind::kPython && scene.model.threads[held.holder].tid == 0;
  return held.may_be_own || is_of_python || kind == model::LockKind::kSemaphore || kind == model::LockKind::kRwlockRead;
}

// If several threads of one process wait for the same lock, only the wait of the first thread is reported.
void drop_repeated(Scene& scene, std::size_t first_touch) {
  auto& touches = scene.model.touches;
  std::set<std::pair<model::TouchKind, std::uint64_t>> told;
  const auto is_repeated = [&](const model::Touch& touch) {
    if (!touch.held) return false;
    const model::Held& held = scene.model.forks[touch.fork].held[*touch.held];
    return !told.emplace(touch.kind, scene.model.locks[held.lock].address).second;
  };
  const auto begin = touches.begin() + static_cast<std::ptrdiff_t>(first_touch);
  std::vector<model::Touch> kept;
  std::copy_if(begin, touches.end(), std::back_inserter(kept),
               [&](const model::Touch& touch) { return !is_repeated(touch); });
  touches.erase(begin, touches.end());
  std::ranges::move(kept, std::back_inserter(touches));
}

}  // namespace

void drop_weaker_findings(Scene& scene, std::size_t subject, std::size_t first_touch) {
  drop_repeated(scene, first_touch);
  auto& touches = scene.model.touches;
  const auto begin = touches.begin() + static_cast<std::ptrdiff_t>(first_touch);
  // A touch of the kind kExit shows only that the process is inside of exit(). It does not show why the process hangs.
  const bool is_proved = std::any_of(begin, touches.end(), [&](const model::Touch& touch) {
    return touch.kind != model::TouchKind::kExit && !is_guess(scene, touch);
  });
  const bool is_explained = is_proved || has_own_deadlock(scene, subject);
  const std::int32_t first_thread = scene.subjects[subject].image.pid;
  const bool is_of_first = std::any_of(begin, touches.end(), [&](const model::Touch& touch) {
    return touch.kind != model::TouchKind::kExit && touch.tid == first_thread;
  });
  touches.erase(std::remove_if(begin, touches.end(),
                               [&](const model::Touch& touch) {
                                 return is_guess(scene, touch) &&
                                        (is_explained || (is_of_first && touch.tid != first_thread));
                               }),
                touches.end());
}

}  // namespace forksight::inspect
