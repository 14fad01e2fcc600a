// What has not happened, and may: FORKSIGHT_LOCK_ORDER (lock_order.hpp) and FORKSIGHT_PREDICT (hold_times.hpp). Either
// of them takes the fast path from all threads, so that where neither is asked for no lock pays anything.
//
// Beside each entry of a thread's held array there is a note, in a mapping of its own, with the number of the lock.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "locks/orphans.hpp"
#include "record/slots.hpp"

namespace forksight {

struct HeldNote {
  std::uint64_t number;  // of the lock (lock_number.hpp); 0: it is not followed
  std::uint64_t since;   // ticks(); 0: not timed
  std::uint64_t stack;   // ref to kStack where it was taken this time, 0: not written
  std::uint32_t hold;    // index into the table of hold times; valid if `since` is
  std::uint32_t reserved;
};

extern bool g_foresees;
inline bool foresees() { return FORKSIGHT_UNLIKELY(g_foresees); }
// What t_fast is to be outside of atfork handlers.
inline Slot* fast_slot(Slot* slot) { return locks_are_watched() || foresees() ? nullptr : slot; }

// By the initialiser. Without memory for the tables nothing is foreseen.
void start_foresight();

// All of the following only if foresees().

// `slot` is of a thread about to be made. Its thread lives from here on.
void begin_life(Slot& slot);
// A thread that was not made through the hooks.
void meet_foreign_thread();
// Before a join: what to give to note_joined() if it succeeds.
std::uint64_t find_life(std::uint64_t thread_pointer);
void note_joined(std::uint64_t life_record);

// The calling thread acquired the lock and has pushed it on its array. `waits`: by a call that waits until it has it,
// which neither an attempt nor one with a deadline does.
void foresee_acquired(Slot* slot, const volatile void* lock, trace::LockKind kind, bool waits);
// It is about to release it, or to wait for a condition; the lock is on its array still.
void foresee_released(Slot* slot, const volatile void* lock);

// In a forked child, before anything else runs. fork-child-safe.
void foresee_in_child(Slot& self);

// For the two parts.
HeldNote& note_of(const Slot* slot, const HeldLock* entry);
// An entry of the held array that has a valid note.
bool is_followed(const HeldLock* entry);
// What an entry keeps others out by: the number of its lock; of a spinlock and an annotated lock, which have none, the
// address, where a mistake only keeps a finding back. 0: nothing that is known.
std::uint64_t gate_number(const Slot* slot, const HeldLock* entry);
// The number of the thread's life, given now if it has none yet; and its record, 0 without a trace.
std::uint64_t life_of(Slot& slot);
std::uint64_t ensure_life_record(Slot& slot);
// So that the trace can name what is at this address: a library may have come since. Done at the next release.
void want_module_of(std::uint64_t pc);
std::uint64_t now_of_lives();
// Counts one more, in a note that is written at the first.
void count_in_note(std::uint64_t& note, trace::NoteCode code);

}  // namespace forksight
