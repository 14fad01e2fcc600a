#include "collect/join_look.hpp"

#include <algorithm>

namespace forksight::collect {
namespace {

using model::TouchKind;

constexpr std::uint64_t kLockBytes = 64;  // no lock of glibc is larger (pthread_rwlock_t has 56 bytes)

const model::Wait* find_wait(const model::Model& model, model::ProcessId process, std::int32_t tid) {
  const auto& waits = model.processes[process].waits;
  const auto found = std::ranges::find(waits, tid, &model::Wait::tid);
  return found == waits.end() ? nullptr : &*found;
}

// Returns the address of the touched object; 0 if the touch has no object with an address.
std::uint64_t object_of(const model::Model& model, const model::Touch& touch) {
  if (touch.kind == TouchKind::kFutexWait) return touch.object;
  const bool is_of_lock =
      touch.kind == TouchKind::kLock || touch.kind == TouchKind::kCondition || touch.kind == TouchKind::kBarrier;
  if (!is_of_lock || !touch.held) return 0;
  return model.locks[model.forks[touch.fork].held[*touch.held].lock].address;
}

bool is_open(const model::Touch& touch) {
  return !touch.returned && !touch.cured && touch.action == model::TouchAction::kNone;
}

}  // namespace

void join_look(model::Model& model) {
  for (model::Touch& touch : model.touches) {
    const std::uint64_t object = object_of(model, touch);
    if (object == 0 || !is_open(touch)) continue;
    const model::Wait* const wait = find_wait(model, touch.process, touch.tid);
    const bool is_there = wait != nullptr && wait->kind == model::WaitKind::kFutex && wait->object >= object &&
                          wait->object < object + kLockBytes && wait->stack.known() && !wait->stack.cut;
    if (is_there) touch.stack = wait->stack;
    if (!touch.held) continue;
    // If the thread that waited at the condition variable or barrier at the fork still waits there, its present stack
    // goes into Held::holder_now.
    model::Held& held = model.forks[touch.fork].held[*touch.held];
    const model::LockKind kind = model.locks[held.lock].kind;
    if (kind != model::LockKind::kCondition && kind != model::LockKind::kBarrier) continue;
    const model::Thread& holder = model.threads[held.holder];
    const model::Wait* const its = find_wait(model, holder.process, holder.tid);
    if (its != nullptr && its->object >= object && its->object < object + kLockBytes) held.holder_now = its->stack;
  }
}

}  // namespace forksight::collect
