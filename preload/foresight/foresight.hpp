// Records facts for predictions of hangs that have not happened: orders of locks for FORKSIGHT_LOCK_ORDER
// (lock_order.hpp), and how long locks are held for FORKSIGHT_PREDICT (hold_times.hpp). If either variable is set,
// every hook of a lock takes its slow path. If neither is set, the fast path of these hooks has no extra cost.
//   Each entry in a thread's array of held locks (record/slots.hpp) has a note, in a separate mapping, with the number
//   of the lock.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

struct HeldNote {
  std::uint64_t number;  // number of the lock (lock_number.hpp); 0: none
  std::uint64_t gate;    // see gate_number()
  std::uint64_t since;   // ticks(); 0: not timed
  std::uint64_t stack;   // ref to the kStack of this acquisition; 0: not written
  std::uint32_t hold;    // index into the table of hold times; valid if `since` is not 0
  std::uint32_t reserved;
};

inline bool tracks_lock_use() { return FORKSIGHT_UNLIKELY((g_slow_locks & kSlowForesight) != 0); }

// Called by the initialiser. Without memory for the tables, neither orders nor times are recorded.
void start_foresight();

// Called by the lock events (locks/lock_events.hpp). For events of threads see lives.hpp.
void track_acquired(Slot* slot, const volatile void* lock, trace::LockKind kind, bool waits);
void track_released(Slot* slot, const volatile void* lock);
void move_note(Slot* slot, HeldLock* to, const HeldLock* from);

// The functions below are for lock_order.cpp, hold_times.cpp and lives.cpp.
HeldNote& note_of(const Slot* slot, const HeldLock* entry);
// True if the lock of the entry is of a kind whose orders and times are recorded: a mutex or a rwlock. Only such an
// entry has a note.
bool is_followed(const HeldLock* entry);
// Called when the thread of `slot` is about to create the second thread of the process. Fills the notes about the locks
// that this thread took while it was the only one.
void note_early(Slot& slot);
// True if the memory of the entry's lock says that the lock is still held. Another thread may have released the lock,
// and the memory may be gone. is_followed() must be true for the entry.
bool is_still_held(const Slot& slot, const HeldLock* entry);
// Returns a number that identifies the lock of an entry as a gate: a lock that all threads hold when they take certain
// other locks. For most locks this is the number of the lock. For a lock without a number (robust, shared between
// processes, a spinlock, a semaphore used as a lock, an annotated lock) the result is made from the lock's address. If
// another lock later has the same address and result, this can only hide a finding. 0: the lock cannot be a gate, or is
// not known.
std::uint64_t gate_number(const Slot* slot, const HeldLock* entry);
// Makes sure that the trace gets a record of the library with the code at this address. For this, the table of modules
// may be updated at the next release of a lock.
void want_module_of(std::uint64_t pc);

namespace at_fork {
struct Foresight {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
