#include "inspect/read_lock.hpp"

#include <array>

namespace forksight::inspect {
namespace {

using model::LockKind;

trace::LockKind to_trace(LockKind kind) {
  switch (kind) {
    case LockKind::kMutex: return trace::LockKind::kMutex;
    case LockKind::kRwlockRead: return trace::LockKind::kRwlockRead;
    case LockKind::kRwlockWrite: return trace::LockKind::kRwlockWrite;
    case LockKind::kSpinlock: return trace::LockKind::kSpinlock;
    case LockKind::kSemaphore: return trace::LockKind::kSemaphore;
    case LockKind::kBarrier: return trace::LockKind::kBarrier;
    case LockKind::kCondition: return trace::LockKind::kCondition;
    case LockKind::kGuard: return trace::LockKind::kGuard;
    case LockKind::kCustom: return trace::LockKind::kCustom;
  }
  return trace::LockKind::kCustom;
}

}  // namespace

std::optional<collect::LockState> read_lock(const image::Image& image, LockKind kind, std::uint64_t address,
                                            const image::Image* parent) {
  std::array<std::uint8_t, 56> memory{};
  const std::size_t got = image.memory->read(address, std::as_writable_bytes(std::span(memory)));
  auto state = collect::decode_lock(to_trace(kind), std::span(memory).first(got), image.libc);
  if (!state || state->owner == 0) return state;
  const image::Thread* owner = image.find_own(state->owner);
  if (owner == nullptr && parent != nullptr) owner = parent->find_own(state->owner);
  if (owner != nullptr) state->owner = owner->tid;
  return state;
}

}  // namespace forksight::inspect
