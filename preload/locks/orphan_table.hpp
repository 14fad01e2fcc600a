// The table of the locks that no thread of a forked child can unlock (orphans.hpp). An entry never moves to another
// address. fork-child-safe.
#pragma once

#include <cstdint>

#include "locks/orphan_proof.hpp"

namespace forksight {

struct Orphan {
  std::uint64_t tagged;  // address and kind; 0: no longer an orphan
  std::uint64_t held_record;
  std::uint64_t fork_record;
  std::int32_t holder_tid;
  LockState state;  // of the lock, at the fork
  bool by_forking_thread;
  bool by_owner;  // no held array has the lock: only the owner in the lock's memory shows who held it
  bool touched;
  bool given;  // the lock was given to the child (--cure=self-held): no orphan, but its first use is recorded
};

std::uint32_t orphan_count();
Orphan& orphan_at(std::uint32_t index);
// Adds an entry, and returns it. Null: there is no memory for another entry.
Orphan* add_orphan(const Orphan& orphan);
// Returns how many orphans could not be added since the last call.
std::uint32_t take_count_of_unstored_orphans();

}  // namespace forksight
