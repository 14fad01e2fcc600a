// The orders in which threads take locks. Each pair of a lock that is held and one that is acquired is written into the
// trace when it is first seen, with both stacks; after that it costs a look-up and two stores into that record.
#pragma once

#include <cstddef>

#include "record/slots.hpp"

namespace forksight {

std::size_t lock_order_bytes();
void start_lock_order(void* memory);  // of so many bytes, all 0

// The note of the parent's full table is the parent's.
void forget_orders_in_child();

// `taken` is the innermost entry of the calling thread's array, and has a number.
void record_orders(Slot& slot, const HeldLock* taken);

}  // namespace forksight
