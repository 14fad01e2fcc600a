// What has not happened, and may: FORKSIGHT_LOCK_ORDER (lock_order.hpp) and FORKSIGHT_PREDICT (hold_times.hpp). Either
// of them takes the fast path from all threads, so that where neither is asked for no lock pays anything.
//
// Beside each entry of a thread's held array there is a note, in a mapping of its own, with the number of the lock.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

struct HeldNote {
  std::uint64_t number;  // of the lock (lock_number.hpp); 0: it is not followed
  std::uint64_t gate;    // see gate_number()
  std::uint64_t since;   // ticks(); 0: not timed
  std::uint64_t stack;   // ref to kStack where it was taken this time, 0: not written
  std::uint32_t hold;    // index into the table of hold times; valid if `since` is
  std::uint32_t reserved;
};

inline bool foresees() { return FORKSIGHT_UNLIKELY((g_slow_locks & kSlowForesight) != 0); }

// By the initialiser. Without memory for the tables nothing is foreseen.
void start_foresight();

// What it is told of locks (locks/lock_events.hpp). Of threads: lives.hpp.
void foresee_acquired(Slot* slot, const volatile void* lock, trace::LockKind kind, bool waits);
void foresee_released(Slot* slot, const volatile void* lock);
void move_note(Slot* slot, HeldLock* to, const HeldLock* from);

// For the two parts.
HeldNote& note_of(const Slot* slot, const HeldLock* entry);
// An entry of the held array that has a valid note.
bool is_followed(const HeldLock* entry);
// The calling thread is about to make the second one: gives notes to the locks that it took while it was alone.
void note_early(Slot& slot);
// Whether the lock's memory says so; it may be gone, if somebody else has released the lock. For followed kinds.
bool is_still_held(const Slot& slot, const HeldLock* entry);
// What an entry keeps others out by: the number of its lock; of one that has none (robust, shared between processes, a
// spinlock, a semaphore that is used as a lock, an annotated lock) the address, where a mistake only keeps a finding
// back. 0: nothing that is known.
std::uint64_t gate_number(const Slot* slot, const HeldLock* entry);
// So that the trace can name what is at this address: a library may have come since. Done at the next release.
void want_module_of(std::uint64_t pc);

namespace at_fork {
struct Foresight {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
