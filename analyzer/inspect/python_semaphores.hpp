// Finds out which thread holds a lock of Python's multiprocessing. Such a lock is a POSIX semaphore in shared memory,
// which records no owner. But each process has a Python object for the lock. This object counts how often this process
// acquired and released the lock.
#pragma once

#include <cstdint>
#include <optional>

#include "image/image.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// A SemLock object of CPython (Modules/_multiprocessing/semaphore.c) or of billiard. It is the same from CPython 3.8 to
// 3.15. On x86-64 its fields follow the pointer to its type: handle (8 bytes), last_tid (8), count (4), maxvalue (4),
// kind (4).
struct SemLock {
  std::uint64_t handle_address = 0;  // where the field `handle` is, in the process
  std::uint64_t thread = 0;          // pthread_self() of the thread that acquired the semaphore last
  // How often this process acquired the semaphore since the process was forked, minus how often it released the
  // semaphore.
  std::int32_t count = 0;
  // The object is an RLock, or a semaphore with at most one unit, so at most one process can have it.
  bool is_lock = false;
};

// True if Python's small objects may be in the mapping: in the heap of malloc(), or in anonymous memory.
bool may_have_objects(const proc::Mapping& mapping);

// Finds the object for the semaphore at address `semaphore` of the process. `hint`: SemLock::handle_address in the
// parent or in a child, or 0. `budget`: bytes of memory that may still be searched. nullopt: there is no such object,
// the budget was too small, or several objects look alike.
std::optional<SemLock> find_sem_lock(const image::Image& image, std::uint64_t semaphore, std::uint64_t hint,
                                     std::uint64_t& budget);

// Looks at each wait for a semaphore of multiprocessing if it is proven that this wait never ends. If the Python
// objects show which processes acquired the semaphore, stores that in the wait's `semaphore_use`. If one process holds
// the semaphore as a lock, adds this process to those that could end the wait.
void find_semaphore_holders(Scene& scene);

}  // namespace forksight::inspect
