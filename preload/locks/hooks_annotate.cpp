// The functions behind <forksight/annotate.h>: locks that a program implements itself. The program reports when a
// thread waits for such a lock, has it, and releases it. The shim does not know the layout of these locks.
#include <errno.h>
#include <string.h>

#include "forksight/annotate.h"

#include "guest/memory.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "loader/next.hpp"
#include "locks/held.hpp"
#include "locks/orphans.hpp"
#include "record/slots.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

constexpr auto kKind = trace::LockKind::kCustom;
constexpr std::size_t kMostNameBytes = 128;

std::uint64_t tag_of(const volatile void* lock, bool shared) {
  return tag_lock(lock, kKind) | (shared ? kSharedHold : 0);
}

// Removes the innermost hold of this annotated lock, shared or exclusive. Returns false if the thread has none. The
// kind is compared, too, because a lock of libc may be at the same address.
bool pop(Slot* slot, const volatile void* lock) {
  const std::uint64_t tagged = tag_of(lock, false);
  HeldLock* entry = slot->top - 1;
  while (entry > slot->held && (entry->lock & ~kSharedHold) != tagged) --entry;
  if (entry == slot->held) return false;
  drop_held(slot, entry);
  return true;
}

void append_name(std::uint64_t touch, const char* name) {
  char text[kMostNameBytes];
  if (name == nullptr) return;
  const std::size_t bytes = strnlen(text, read_memory(name, text, sizeof text));
  Record record(trace::RecordType::kLockName, sizeof(trace::LockNameRecord) + bytes, Importance::kFinding);
  if (!record) return;
  *record.as<trace::LockNameRecord>() = {touch, static_cast<std::uint32_t>(bytes), 0};
  memcpy(record.payload() + sizeof(trace::LockNameRecord), text, bytes);
  record.commit();
}

void end_wait(Slot* slot, int result) {
  if (slot == nullptr || slot->open_touch == 0) return;
  end_touch({slot->open_touch}, result);
  slot->open_touch = 0;
}

}  // namespace

FORKSIGHT_EXPORT_PLAIN(void, forksight_lock_waiting, const volatile void* lock, const char* name, unsigned flags) {
  initialise();
  if (!locks_are_watched()) return;
  Slot* const slot = own_slot();
  if (slot == nullptr || slot->open_touch != 0) return;
  const Touch touch = touch_lock(lock, kKind, (flags & FORKSIGHT_TIMED) != 0, FORKSIGHT_FRAME().site(),
                                 (flags & FORKSIGHT_SHARED) != 0);
  if (touch.record == 0) return;
  slot->open_touch = touch.record;
  append_name(touch.record, name);
}

FORKSIGHT_EXPORT_PLAIN(void, forksight_lock_acquired, const volatile void* lock, const char*, unsigned flags) {
  initialise();
  Slot* const slot = own_slot();
  const bool shared = (flags & FORKSIGHT_SHARED) != 0;
  if (FORKSIGHT_UNLIKELY(locks_are_watched())) {
    end_wait(slot, 0);
    forget_orphan(lock, kKind, shared);
  }
  if (slot != nullptr) push_held(slot, tag_of(lock, shared), FORKSIGHT_FRAME());
}

FORKSIGHT_EXPORT_PLAIN(void, forksight_lock_released, const volatile void* lock) {
  initialise();
  Slot* const slot = t_slot;
  if (slot != nullptr && pop(slot, lock)) return;
  // If a thread releases a lock that it does not hold, the thread resets the lock, as child handlers do.
  if (FORKSIGHT_UNLIKELY(locks_are_watched())) forget_orphan(lock, kKind);
}

FORKSIGHT_EXPORT_PLAIN(void, forksight_lock_gave_up, const volatile void*) {
  initialise();
  end_wait(t_slot, ETIMEDOUT);
}
