// Whose thread it is: a library's pool, or the program's own. One table: owners.def.
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
  kUnknown,  // a thread of the program's own, or of a library that is not in the table
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
const OwnerInfo& info_of(Owner owner);    // of kUnknown, too

// By start routine, its library, the stack that made the thread, and what the thread is inside of.
Owner find_owner(const Thread& thread);
Owner find_owner(const Thread& thread, const Stack& runs);
// By the library alone.
Owner find_owner_of_library(std::string_view path);
// The library whose thread it is: that of the start routine, or of the maker where that one is a general one.
std::string_view find_owning_library(const Thread& thread);

// What became of one of the fork's pools. A trace has the threads that were there after all prepare handlers: a pool that
// its library's handler should have ended, and that is among them, is lost. For a fork that is inferred, the parent's
// threads of today stand for those of then: such a library has started its pool again since, so they do not show a loss.
PoolState find_pool_state(const ThreadPool& pool, const Fork& fork);

}  // namespace forksight::model
