// What becomes of an operation on a condition variable that counts waiters of the parent: glibc 2.25 to 2.40,
// nptl/pthread_cond_{signal,broadcast,destroy}.c and __condvar_quiesce_and_switch_g1 in pthread_cond_common.c.
// From 2.41 on nobody waits for a group to become empty, and __g_refs stays 0: there only destroy blocks.
#pragma once

#include "locks/lock_memory.hpp"

namespace forksight {

enum class Fate {
  kPasses,
  kBlocks,  // waits until the lost waiters leave
  kStolen,  // the signal goes to a lost waiter although a real one waits
};

// `at` is changed as the operation would. `lost_position`: waiters up to this position are lost. `real`: waiters of the
// child that are inside; `outside`: those of them that `at` does not count.
Fate foresee(ConditionMemory& at, trace::SyncOperation operation, std::uint64_t lost_position, std::uint32_t real,
             std::uint32_t outside);

}  // namespace forksight
