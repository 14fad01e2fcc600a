// Predictions of hangs that have not happened: FORKSIGHT_LOCK_ORDER (lock_order.hpp) and FORKSIGHT_PREDICT
// (hold_times.hpp). If either is set, every lock takes the slow path. If neither is set, the fast path has no extra
// cost.
//   Each entry of a thread's held array has a note, in a separate mapping, with the number of the lock.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

struct HeldNote {
  std::uint64_t number;  // number of the lock (lock_number.hpp); 0: not followed
  std::uint64_t gate;    // see gate_number()
  std::uint64_t since;   // ticks(); 0: not timed
  std::uint64_t stack;   // ref to the kStack of this acquisition; 0: not written
  std::uint32_t hold;    // index into the table of hold times; valid if `since` is not 0
  std::uint32_t reserved;
};

inline bool foresees() { return FORKSIGHT_UNLIKELY((g_slow_locks & kSlowForesight) != 0); }

// Called by the initialiser. Without memory for the tables nothing is recorded here.
void start_foresight();

// Called by the lock events (locks/lock_events.hpp). For events of threads see lives.hpp.
void foresee_acquired(Slot* slot, const volatile void* lock, trace::LockKind kind, bool waits);
void foresee_released(Slot* slot, const volatile void* lock);
void move_note(Slot* slot, HeldLock* to, const HeldLock* from);

// For the two parts, lock_order.cpp and hold_times.cpp.
HeldNote& note_of(const Slot* slot, const HeldLock* entry);
// The entry of the held array has a valid note.
bool is_followed(const HeldLock* entry);
// The calling thread is about to create the second thread of the process: gives notes to the locks that it took while
// it was alone.
void note_early(Slot& slot);
// The lock's memory says that it is still held. Another thread may have released it, so the memory may be gone. For
// followed kinds.
bool is_still_held(const Slot& slot, const HeldLock* entry);
// Identifies the lock of an entry as a gate, which is a lock that keeps other threads out: by the number of the lock. A
// lock without a number (robust, shared between processes, a spinlock, a semaphore used as a lock, an annotated lock)
// is identified by its address. If that address is reused, the mistake can only hide a finding. 0: not known.
std::uint64_t gate_number(const Slot* slot, const HeldLock* entry);
// Makes sure that the trace has a record of the library with the code at this address. The table of modules is updated
// at the next release of a lock.
void want_module_of(std::uint64_t pc);

namespace at_fork {
struct Foresight {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
