// What happens to an operation on a condition variable that counts waiters of the parent:
// nptl/pthread_cond_{signal,broadcast,destroy}.c and the switch of groups in pthread_cond_common.c. If glibc counts
// references (forksight/abi/condition.hpp), the thread that switches the groups waits until the old group is empty;
// otherwise only destroy blocks.
#pragma once

#include "forksight/abi/condition.hpp"
#include "forksight/trace/format.hpp"

namespace forksight {

enum class Fate {
  kPasses,
  kBlocks,  // waits until the lost waiters leave
  kStolen,  // the signal goes to a lost waiter although a real one waits
};

// Changes `at` as the operation would. `lost_position`: waiters up to this position are lost. `real`: waiters of the
// child that are inside; `outside`: those of them that `at` does not count.
Fate foresee(abi::Condition& at, trace::SyncOperation operation, std::uint64_t lost_position, std::uint32_t real,
             std::uint32_t outside);

}  // namespace forksight
