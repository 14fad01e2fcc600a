#include "held.hpp"

#include "guest.hpp"

namespace forksight {

bool pop_held_slow(Slot* slot, std::uint64_t lock) {
  std::uint32_t index = slot->depth;
  while (index > 0 && lock_address(slot->held[index - 1].lock) != lock) --index;
  if (index == 0) return false;
  slot->held[index - 1].lock = 0;
  compiler_fence();
  while (slot->depth > 0 && slot->held[slot->depth - 1].lock == 0) --slot->depth;
  return true;
}

void push_held_once(Slot* slot, std::uint64_t tagged, const Site& site) {
  for (std::uint32_t index = slot->depth; index > 0; --index) {
    HeldLock& entry = slot->held[index - 1];
    if (entry.lock == tagged) {
      entry.site = site;
      return;
    }
  }
  push_held(slot, tagged, site);
}

}  // namespace forksight
