// The orders in which threads take locks. Each pair of a held lock and an acquired one is written to the trace when it
// is first seen, with both stacks. After that it costs a look-up and two stores into the record.
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
