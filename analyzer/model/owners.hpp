// Whose thread it is: a library's pool, or the program itself. One table: owners.def.
#pragma once

#include <span>
#include <string_view>

namespace forksight::model {

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

enum class OwnerFate { kLost, kHandles, kRebuilds, kUnneeded };

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

std::span<const OwnerInfo> all_owners();  // without kUnknown
const OwnerInfo& info_of(Owner owner);    // also for kUnknown

// By start routine, its library, the stack that made the thread, and what the thread is inside of.
Owner find_owner(const Thread& thread);
// The same, with the stack of the thread now.
Owner find_owner(const Thread& thread, const Stack& runs);
// By the library only.
Owner find_owner_of_library(std::string_view path);
// True for a BLAS whose OpenMP builds wait for the other threads of a parallel region in a loop of their own.
bool spins_for_team(Owner owner);
// The library that owns the thread: that of the start routine; if that is a general one, that of the maker.
std::string_view find_owning_library(const Thread& thread);

// What became of one pool of the fork. A trace lists the threads that existed after all prepare handlers. If a
// library's prepare handler should have ended its pool, and the pool's threads are in that list, the pool is lost. An
// inferred fork lists the parent's present threads instead. Such a library has started its pool again since the fork,
// so these threads do not show that the pool was lost.
PoolState find_pool_state(const ThreadPool& pool, const Fork& fork);

}  // namespace forksight::model
