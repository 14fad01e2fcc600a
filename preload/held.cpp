#include "held.hpp"

#include "guest.hpp"

namespace forksight {

bool pop_held_slow(Slot* slot, std::uint64_t lock) {
  HeldLock* entry = slot->top - 1;
  while (entry > slot->held && !is_libc_lock_at(entry->lock, lock)) --entry;
  if (entry == slot->held) return false;
  entry->lock = 0;
  compiler_fence();
  while (slot->top > slot->held + 1 && slot->top[-1].lock == 0) --slot->top;
  return true;
}

void push_held_once_slow(Slot* slot, std::uint64_t tagged, Frame frame) {
  for (HeldLock* entry = slot->top - 1; entry > slot->held; --entry) {
    if (entry->lock == tagged) {
      store_site(entry->site, frame);
      return;
    }
  }
  push_held(slot, tagged, frame);
}

}  // namespace forksight
