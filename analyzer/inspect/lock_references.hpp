// Helps to explain why a child waits for a lock of Rust, parking_lot or abseil. Such a lock does not record its holder.
// But the child's memory still has the stacks of the threads that its fork left behind. If a stack refers to the lock,
// its thread may hold the lock. This is no proof, because a thread may refer to a lock without holding it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "image/image.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// Kinds of locks that record no owner. A kind is recognised by the names of the functions that take such locks.
enum class LockFamily {
  kNone,
  kRustMutex,
  kRustRwlockRead,
  kRustRwlockWrite,
  kParkingLotMutex,
  kParkingLotRwlock,
  kAbseil
};
// Returns the family of the lock that this function takes. `function`: its name without the types of its parameters.
LockFamily family_of_function(std::string_view function);

struct AwaitedLock {
  LockFamily family = LockFamily::kNone;
  // the address of the word that says whether the lock is held; a waiter may sleep on another word
  std::uint64_t address = 0;
  std::uint64_t object = 0;  // the address of the lock object, which functions that use the lock get as an argument
};
// Finds the lock for which a thread sleeps, from its stack and the memory. nullopt: the thread waits for no lock of
// these families, or the address of the lock is not known.
std::optional<AwaitedLock> find_awaited_lock(const image::Image& image, const image::Thread& thread,
                                             const StuckCall& call);

// The thread `waiting` of the process `child` sleeps for a lock, and `touch` is the record of this wait. Finds the
// threads whose stacks refer to the lock, and adds these threads to `touch`. Searches the other threads of the child,
// and the threads that `fork` left behind.
void add_lock_references(Scene& scene, std::size_t child, const image::Thread& waiting, const model::Fork& fork,
                         model::Touch& touch);

}  // namespace forksight::inspect
