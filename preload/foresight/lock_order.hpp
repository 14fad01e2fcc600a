// The orders in which threads take locks. A record belongs to one thread, one pair of a held and an acquired lock, and
// one set of further locks that are held then. It is written, with both stacks, when such an acquisition is first seen.
// Each later one costs a look-up and a few stores into the record.
#pragma once

#include <cstddef>

#include "record/slots.hpp"

namespace forksight {

std::size_t lock_order_bytes();
void start_lock_order(void* memory);  // a mapping of this size, all zero

// Called in a child, which writes its own note about a full table.
void forget_orders_in_child();

// `taken` is the innermost entry of the calling thread's array, and has a number.
void record_orders(Slot& slot, const HeldLock* taken);

}  // namespace forksight
