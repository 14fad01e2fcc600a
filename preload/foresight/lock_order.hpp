// The orders in which threads take locks. There is one record for each thread, pair of a held and an acquired lock, and
// set of locks that are held besides. It is written to the trace when the acquisition is first seen, with both stacks.
// After that, such an acquisition costs a look-up and a few stores into the record.
#pragma once

#include <cstddef>

#include "record/slots.hpp"

namespace forksight {

std::size_t lock_order_bytes();
void start_lock_order(void* memory);  // a mapping of this size, all zero

// The note about a full table belongs to the parent.
void forget_orders_in_child();

// `taken` is the innermost entry of the calling thread's array, and has a number.
void record_orders(Slot& slot, const HeldLock* taken);

}  // namespace forksight
