#include "threads/ended.hpp"

#include "guest/sys.hpp"
#include "record/own_ids.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

bool is_live(const Slot& slot) {
  return slot.epoch == epoch() && slot.state.load(std::memory_order_acquire) == SlotState::kLive;
}

// True if the kernel has given the thread's id to a later thread.
bool is_succeeded(const Slot& slot) {
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    const Slot& other = slot_at(i);
    if (&other != &slot && other.tid == slot.tid && is_live(other) && other.created_ns > slot.created_ns) return true;
  }
  return false;
}

bool is_gone(const Slot& slot, std::int32_t pid) {
  if (slot.is_initial_stack) return has_initial_thread_ended(slot);
  return !sys::thread_exists(pid, slot.tid) || is_succeeded(slot);
}

}  // namespace

void end_slots_of_gone_threads(Slot* self, bool are_all_in_doubt) {
  const std::int32_t pid = sys::getpid();
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    if (&slot == self || !is_live(slot)) continue;
    const bool is_in_doubt = are_all_in_doubt || slot.is_initial_stack || (slot.flags & trace::kThreadForeign) != 0;
    if (!is_in_doubt || !is_gone(slot, pid)) continue;
    // The thread may have ended before this fork began. So it does not count as ended by a prepare handler.
    if (are_all_in_doubt && i < self->lived_count) self->lived_at_entry[i / 64] &= ~(std::uint64_t{1} << i % 64);
    SlotState live = SlotState::kLive;
    slot.state.compare_exchange_strong(live, SlotState::kEnded, std::memory_order_acq_rel);
  }
}

bool initial_thread_has_ended() {
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    const Slot& slot = slot_at(i);
    if (slot.epoch == epoch() && slot.is_initial_stack) return has_initial_thread_ended(slot);
  }
  return false;
}

void end_slot_of_exiting_thread() {
  Slot* const self = t_slot;
  if (self != nullptr && self->tid == sys::gettid()) end_slot(self);
}

}  // namespace forksight
