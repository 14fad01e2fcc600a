// The locks that a forked child has lost, as many as there are. Entries stay where they are. fork-child-safe.
#pragma once

#include <cstdint>

#include "locks/orphan_proof.hpp"

namespace forksight {

struct Orphan {
  std::uint64_t tagged;  // address and kind; 0: forgotten
  std::uint64_t held_record;
  std::uint64_t fork_record;
  std::int32_t holder_tid;
  LockState state;  // at the fork
  bool by_forking_thread;
  bool by_owner;  // known by the owner in its memory alone
  bool touched;
  bool given;  // to the child (--cure=self-held): no orphan, but its first use is worth a word
};

std::uint32_t orphan_count();
Orphan& orphan_at(std::uint32_t index);
// Null: there is no memory for one more.
Orphan* add_orphan(const Orphan& orphan);
// Those that were not added, since the last time that this was asked.
std::uint32_t take_unknown_orphans();

}  // namespace forksight
