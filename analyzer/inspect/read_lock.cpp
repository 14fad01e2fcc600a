#include "inspect/read_lock.hpp"

#include <array>

namespace forksight::inspect {

std::optional<libc::LockState> read_lock(const image::Image& image, model::LockKind kind, std::uint64_t address,
                                         const image::Image* parent) {
  std::array<std::uint8_t, 56> memory{};
  const std::size_t got = image.memory->read(address, std::as_writable_bytes(std::span(memory)));
  auto state = libc::decode_lock(kind, std::span(memory).first(got), image.libc);
  if (!state || state->owner == 0) return state;
  const image::Thread* owner = image.find_own(state->owner);
  if (owner == nullptr && parent != nullptr) owner = parent->find_own(state->owner);
  if (owner != nullptr) state->owner = owner->tid;
  return state;
}

}  // namespace forksight::inspect
