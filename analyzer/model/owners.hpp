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
#define FORKSIGHT_OWNER(id, key, name, libraries, starts, frames, at_fork, measured, fix) id,
#include "model/owners.def"
  kUnknown,  // a thread of the program itself, or of a library that is not in the table
};

enum class PoolAtFork { kLost, kHandles, kRebuilds, kRebuildsByHandler, kUnneeded };

struct OwnerInfo {
  Owner owner;
  const char* key;
  const char* name;
  const char* libraries;
  const char* starts;
  const char* frames;
  PoolAtFork at_fork;
  const char* measured;
  const char* fix;
};

std::span<const OwnerInfo> all_owners();  // without the row of kUnknown
const OwnerInfo& info_of(Owner owner);    // kUnknown has a row, too

// Finds the owner by the start routine, its library, and the stack that made the thread.
Owner find_owner(const Thread& thread);
// Also uses `runs`, the present stack of the thread.
Owner find_owner(const Thread& thread, const Stack& runs);
// Finds the owner by the library only.
Owner find_owner_of_library(std::string_view path);
// True for a BLAS library whose OpenMP build waits for the other threads of a parallel region in a loop of its own.
bool spins_for_team(Owner owner);
// Returns the path of the library that owns the thread. This is the library of the start routine. If that library is
// general (owners.def), it is the innermost other library on the stack that made the thread.
std::string_view find_owning_library(const Thread& thread);

// Returns what happened to one pool at the fork, according to what owners.def says about its owner.
// `pool.threads` are the threads that existed after all prepare handlers. If the fork is inferred, they are the threads
// that the parent has now. `handlers`: all handlers that a trace lists. A pool without threads is handled. If a
// library's prepare handler should have ended the pool, but threads are left, the pool is lost. In an inferred fork,
// such a pool is handled: the library has started its threads again since the fork. If a library makes its pool anew by
// a child handler, and a trace lists no such handler, the pool is lost.
PoolState find_pool_state(const ThreadPool& pool, const Fork& fork, std::span<const AtforkHandlers> handlers);

}  // namespace forksight::model
