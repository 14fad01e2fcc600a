// A child waits for a lock that does not record who holds it: a lock of Rust, parking_lot or abseil. The child's memory
// still has the stacks of the threads that its fork left behind. A stack that refers to the lock belongs to a thread
// that may hold it. That is no proof: a thread may know a lock without holding it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "image/image.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// Which lock a function takes that records no owner.
enum class LockFamily {
  kNone,
  kRustMutex,
  kRustRwlockRead,
  kRustRwlockWrite,
  kParkingLotMutex,
  kParkingLotRwlock,
  kAbseil
};
// `function`: a name without the types of its parameters
LockFamily family_of_function(std::string_view function);

struct AwaitedLock {
  LockFamily family = LockFamily::kNone;
  std::uint64_t address = 0;  // of the word that says whether the lock is held; it may differ from the futex word
  std::uint64_t object = 0;   // of the lock, which the functions that use it know
};
// The lock that a thread sleeps for, according to its stack and the memory. nullopt: it waits for no such lock, or the
// address is not known.
std::optional<AwaitedLock> find_awaited_lock(const image::Image& image, const image::Thread& thread,
                                             const StuckCall& call);

// Fills the lock references of `touch`, for which the thread `waiting` of the process `child` sleeps. `fork`: the fork
// that left the threads behind.
void add_lock_references(Scene& scene, std::size_t child, const image::Thread& waiting, const model::Fork& fork,
                         model::Touch& touch);

}  // namespace forksight::inspect
