// Locks of CPython 3.13 and later (PyMutex, and what is built on it): one byte, and a thread that has to wait sleeps in
// a semaphore on its own stack, beside which the interpreter's "parking lot" keeps the address of the byte.
// Python/lock.c and Python/parking_lot.c.
#pragma once

#include <cstdint>
#include <optional>

#include "image/memory.hpp"
#include "inspect/python/python_layout.hpp"

namespace forksight::inspect {

// What a thread is parked on.
struct PythonPark {
  std::uint64_t address = 0;  // of the byte, or of whatever else it waits for
  bool is_lock = false;       // it is locked, and knows that somebody waits for it; else it is an event, or not known
  std::uint64_t owner = 0;    // pthread_self() of the thread that has the lock; 0: this kind of lock does not tell
};

// `semaphore`: the word that the thread sleeps in. nullopt: it is not parked, or the entry beside the semaphore is not
// what it has been in 3.13, 3.14 and 3.15.
std::optional<PythonPark> find_python_park(const image::Memory& memory, const PythonLayout& layout,
                                           std::uint64_t semaphore);

}  // namespace forksight::inspect
