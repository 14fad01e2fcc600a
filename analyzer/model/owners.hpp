// Finds out who owns a thread: a library with a thread pool, or the program itself. The table is owners.def.
#pragma once

#include <span>
#include <string_view>

namespace forksight::model {

struct AtforkHandlers;
struct Fork;
struct Stack;
struct Thread;
struct ThreadPool;
enum class PoolState;

enum class Owner {
#define FORKSIGHT_OWNER(id, key, name, libraries, starts, frames, fate, measured, fix) id,
#include "model/owners.def"
  kUnknown,  // a thread of the program itself, or of a library that is not in the table
};

enum class OwnerFate { kLost, kHandles, kRebuilds, kRebuildsByHandler, kUnneeded };

struct OwnerInfo {
  Owner owner;
  const char* key;
  const char* name;
  const char* libraries;
  const char* starts;
  const char* frames;
  OwnerFate fate;
  const char* measured;
  const char* fix;
};

std::span<const OwnerInfo> all_owners();  // without that of kUnknown
const OwnerInfo& info_of(Owner owner);    // also for kUnknown

// Finds the owner by the start routine, its library, and the stack that made the thread.
Owner find_owner(const Thread& thread);
// Also uses `runs`, the present stack of the thread.
Owner find_owner(const Thread& thread, const Stack& runs);
// Finds the owner by the library only.
Owner find_owner_of_library(std::string_view path);
// True for a BLAS whose OpenMP builds wait for the other threads of a parallel region in a loop of their own.
bool spins_for_team(Owner owner);
// Returns the path of the library that owns the thread: the library of the start routine or, if that one is general,
// the innermost other library on the stack that made the thread.
std::string_view find_owning_library(const Thread& thread);

// What became of one pool of the fork. A trace lists the threads that existed after all prepare handlers. If a
// library's prepare handler should have ended its pool, and the pool's threads are in that list, the pool is lost. An
// inferred fork lists the parent's present threads instead. A library with such a handler has started its pool again
// since the fork, so these threads do not show that the pool was lost. `handlers`: all handlers that a trace lists. If a
// library needs a child handler to make its pool anew, and has none in that list, the pool is lost.
PoolState find_pool_state(const ThreadPool& pool, const Fork& fork, std::span<const AtforkHandlers> handlers);

}  // namespace forksight::model
