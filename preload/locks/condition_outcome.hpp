// Computes whether an operation blocks on a condition variable that counts waiters of the parent. The computation
// follows glibc's code in nptl/pthread_cond_{signal,broadcast,destroy}.c, and in the switch of groups in
// pthread_cond_common.c. If this glibc counts references (forksight/abi/condition.hpp), the thread that switches the
// groups waits until the old group is empty. With other versions only destroy blocks.
#pragma once

#include "forksight/abi/condition.hpp"
#include "forksight/trace/format.hpp"

namespace forksight {

enum class ConditionOutcome {
  kPasses,
  kBlocks,  // waits until the lost waiters leave
  kStolen,  // the signal goes to a lost waiter, although a thread of the child waits
};

// Returns what would happen to the operation, and changes `at` as the operation would. `lost_position`: waiters before
// this position are lost. `real`: the number of waiters that are threads of the child. `outside`: how many of these
// waiters `at` does not count.
ConditionOutcome predict_outcome(abi::Condition& at, trace::SyncOperation operation, std::uint64_t lost_position,
                                 std::uint32_t real, std::uint32_t outside);

}  // namespace forksight
