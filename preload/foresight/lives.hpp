// Identifies threads, and records which threads each one made and joined. A pthread_t does not identify a thread: it is
// the address of memory that a later thread may get, even before its first instruction. So each thread has a life,
// given by its creator, and a bounded table maps each pthread_t to the life that it belongs to now.
//   async-signal-safe and fork-child-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/slots.hpp"

namespace forksight {

std::size_t lives_bytes();
void start_lives(void* memory);  // a mapping of lives_bytes(), all zero

// The number of the thread's life, and the record of that life (0 without a trace). A thread without a life gets one
// now. The number of a life is its thread's first moment: trace/foresight.hpp explains moments.
std::uint64_t life_of(Slot& slot);
std::uint64_t ensure_life_record(Slot& slot);
// For a thread that has a life.
std::uint64_t moment_of(const Slot& slot);

// Called by the thread events (record/thread_events.hpp). They do nothing unless foresees().
void begin_life(Slot& slot);
void note_begun(Slot& slot);
void note_made(std::uint64_t life_record, const void* place);
void note_foreign_thread();
std::uint64_t find_life(std::uint64_t thread_pointer);
void note_joined(std::uint64_t thread_pointer, std::uint64_t life_record);

// The answer is read from the trace, which other processes may have changed.
bool was_joined_by(std::uint64_t life_record, std::uint64_t joiner);

// The forking thread begins a new life in the child.
void begin_life_in_child(Slot& self);

}  // namespace forksight
