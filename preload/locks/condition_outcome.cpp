#include "locks/condition_outcome.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::SyncOperation;

// glibc has two groups of waiters: signals go to G1, and new waiters join G2. This function closes G1, and makes G2 the
// new G1. False: G1 still has waiters, so the operation would wait until they leave.
bool switch_groups(abi::Condition& at, std::uint32_t in_g2) {
  const std::uint32_t g1 = at.g1();
  if (at.references[g1] >> 1U != 0) return false;
  at.g1_start = at.end_of_g1();
  at.g1_size = static_cast<std::uint32_t>(at.position() - at.g1_start) << 2U;
  at.sizes[g1 ^ 1U] = in_g2;
  at.wseq ^= 1U;
  return true;
}

}  // namespace

ConditionOutcome predict_outcome(abi::Condition& at, SyncOperation operation, std::uint64_t lost_position,
                                 std::uint32_t real, std::uint32_t outside) {
  if (operation == SyncOperation::kWait || at.waiters() + outside == 0) return ConditionOutcome::kPasses;
  if (operation == SyncOperation::kDestroy)
    return at.waiters() > real - outside ? ConditionOutcome::kBlocks : ConditionOutcome::kPasses;
  const std::uint32_t g1 = at.g1();
  const std::uint64_t end_of_g1 = at.end_of_g1();
  if (at.sizes[g1] != 0 && operation == SyncOperation::kSignal) {
    --at.sizes[g1];
    return end_of_g1 <= lost_position && real != 0 ? ConditionOutcome::kStolen : ConditionOutcome::kPasses;
  }
  at.sizes[g1] = 0;
  const std::uint32_t in_g2 = static_cast<std::uint32_t>(at.position() - end_of_g1) + at.sizes[g1 ^ 1U];
  if (in_g2 + outside == 0) return ConditionOutcome::kPasses;
  if (!switch_groups(at, in_g2)) return ConditionOutcome::kBlocks;
  std::uint32_t& size = at.sizes[g1 ^ 1U];
  if (operation == SyncOperation::kBroadcast) {
    size = 0;
  } else if (size != 0) {
    --size;
  }
  return ConditionOutcome::kPasses;
}

}  // namespace forksight
