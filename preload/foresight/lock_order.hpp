// Records the orders in which threads take locks. There is one record for each thread, each pair of a held and an
// acquired lock, and each set of further locks that the thread holds at that acquisition. The record is written at the
// first such acquisition, with the stacks at which the two locks were taken. Each later acquisition of the same kind
// costs a look-up and a few stores into the record.
#pragma once

#include <cstddef>

#include "record/slots.hpp"

namespace forksight {

std::size_t lock_order_bytes();
void start_lock_order(void* memory);  // a mapping of lock_order_bytes(), all zero

// Called in a child, so that the child writes a note of its own if the table is full.
void forget_orders_in_child();

// Records the orders of an acquisition, one for each lock with a number that the thread already held. `taken` is the
// innermost entry of the calling thread's array, and its lock has a number.
void record_orders(Slot& slot, const HeldLock* taken);

}  // namespace forksight
