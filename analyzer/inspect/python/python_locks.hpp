// Finds out for which lock of CPython 3.13 or later a thread waits: for a PyMutex, or for a lock that is built on it. A
// PyMutex is one byte. A thread that has to wait sleeps in a semaphore on its own stack. Next to the semaphore, the
// interpreter's "parking lot" keeps an entry with the address of the byte. See Python/lock.c and Python/parking_lot.c.
#pragma once

#include <cstdint>
#include <optional>

#include "image/memory.hpp"
#include "inspect/python/python_layout.hpp"

namespace forksight::inspect {

// The object for which a thread in the parking lot waits.
struct PythonPark {
  // The address of the byte, or of another object for which the thread waits.
  std::uint64_t address = 0;
  // The byte is locked and records a waiter. False: the object is an event, or is not known.
  bool is_lock = false;
  // pthread_self() of the thread that holds the lock; 0: this kind of lock does not record it
  std::uint64_t owner = 0;
};

// `semaphore`: the word that the thread sleeps in. nullopt: the thread does not sleep in the parking lot, or the entry
// next to the semaphore does not have the layout of 3.13, 3.14 and 3.15.
std::optional<PythonPark> find_python_park(const image::Memory& memory, const PythonLayout& layout,
                                           std::uint64_t semaphore);

}  // namespace forksight::inspect
