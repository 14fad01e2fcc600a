// Writes the kThread records of threads.
#pragma once

#include <cstdint>

#include "record/slots.hpp"

namespace forksight {

// The kThread record of a slot's thread, written now if it does not exist yet. 0 without a trace.
std::uint64_t ensure_thread_record(Slot& slot);
// Copies the creator's stack into the new thread's slot.
void keep_creation_stack(Slot& created, const Slot* creator, const Site& site);

}  // namespace forksight
