// Identifies threads, and records which threads each one made and joined. A pthread_t does not identify a thread: it is
// the address of memory that a later thread may get. A thread may even have ended before its creator sees its
// pthread_t. So the creator gives each thread a life, which has a number that no other thread gets. A bounded table
// maps each pthread_t to the life of the thread that has it now.
//   async-signal-safe and fork-child-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/slots.hpp"

namespace forksight {

std::size_t lives_bytes();
void start_lives(void* memory);  // a mapping of lives_bytes(), all zero

// life_of() returns the number of the thread's life, and ensure_life_record() the record of that life (0 without a
// trace). A thread without a life gets one now. The number of a life is the thread's first moment; trace/foresight.hpp
// explains moments.
std::uint64_t life_of(Slot& slot);
std::uint64_t ensure_life_record(Slot& slot);
// The thread's current moment. Only for a thread that has a life.
std::uint64_t moment_of(const Slot& slot);

// The thread events (record/thread_events.hpp) call the next six functions. If tracks_lock_use() is false, these
// functions do nothing.
void begin_life(Slot& slot);
void note_begun(Slot& slot);
void note_made(std::uint64_t life_record, const void* place);
void note_foreign_thread();
std::uint64_t find_life(std::uint64_t thread_pointer);
void note_joined(std::uint64_t thread_pointer, std::uint64_t life_record);

// True if the thread of the life `joiner` has joined the thread of the life `life_record`. The answer is read from the
// trace, which other processes may have changed.
bool was_joined_by(std::uint64_t life_record, std::uint64_t joiner);

// Called in a child: removes the life of the forking thread. The thread gets a new life when it needs one.
void begin_life_in_child(Slot& self);

}  // namespace forksight
