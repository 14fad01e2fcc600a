// Which thread is which, and what it made and joined. A pthread_t does not tell: it is the address of memory that the
// next thread may get, before its first instruction. So each thread has a life, given by whoever makes it, and a
// bounded table has the life that each pthread_t belongs to now.
//
// async-signal-safe and fork-child-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/slots.hpp"

namespace forksight {

std::size_t lives_bytes();
void start_lives(void* memory);  // of so many bytes, all 0

// The number of the thread's life, given now if it has none yet; and its record, 0 without a trace. A life's number is
// its thread's first moment: trace/foresight.hpp says what moments are.
std::uint64_t life_of(Slot& slot);
std::uint64_t ensure_life_record(Slot& slot);
// Of a thread that has a life.
std::uint64_t moment_of(const Slot& slot);

// What is told of threads (record/thread_events.hpp); nothing is done unless foresees().
void begin_life(Slot& slot);
void note_begun(Slot& slot);
void note_made(std::uint64_t life_record, const void* place);
void meet_foreign_thread();
std::uint64_t find_life(std::uint64_t thread_pointer);
void note_joined(std::uint64_t thread_pointer, std::uint64_t life_record);

// As the trace says, which others may have changed.
bool was_joined_by(std::uint64_t life_record, std::uint64_t joiner);

// The forking thread begins a new life in the child.
void begin_life_in_child(Slot& self);

}  // namespace forksight
