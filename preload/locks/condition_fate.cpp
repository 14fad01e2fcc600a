#include "locks/condition_fate.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::SyncOperation;

// Closes G1, which must be empty of waiters, and makes G2 the new G1. False: it would wait for G1's waiters to leave.
bool switch_groups(ConditionMemory& at, std::uint32_t in_g2) {
  const std::uint32_t g1 = (at.wseq & 1U) ^ 1U;
  if (at.g_refs[g1] >> 1U != 0) return false;
  const std::uint64_t start = (at.g1_start >> 1U) + (at.g1_orig_size >> 2U);
  at.g1_start = start << 1U | (at.wseq & 1U);
  at.g1_orig_size = static_cast<std::uint32_t>(at.position() - start) << 2U;
  at.g_size[g1 ^ 1U] = in_g2;
  at.wseq ^= 1U;
  return true;
}

}  // namespace

Fate foresee(ConditionMemory& at, SyncOperation operation, std::uint64_t lost_position, std::uint32_t real,
             std::uint32_t outside) {
  if (operation == SyncOperation::kWait || at.waiters() + outside == 0) return Fate::kPasses;
  if (operation == SyncOperation::kDestroy) return at.waiters() > real - outside ? Fate::kBlocks : Fate::kPasses;
  const std::uint32_t g1 = (at.wseq & 1U) ^ 1U;
  const std::uint64_t end_of_g1 = (at.g1_start >> 1U) + (at.g1_orig_size >> 2U);
  if (at.g_size[g1] != 0 && operation == SyncOperation::kSignal) {
    --at.g_size[g1];
    return end_of_g1 <= lost_position && real != 0 ? Fate::kStolen : Fate::kPasses;
  }
  at.g_size[g1] = 0;
  const std::uint32_t in_g2 = static_cast<std::uint32_t>(at.position() - end_of_g1) + at.g_size[g1 ^ 1U];
  if (in_g2 + outside == 0) return Fate::kPasses;
  if (!switch_groups(at, in_g2)) return Fate::kBlocks;
  std::uint32_t& size = at.g_size[g1 ^ 1U];
  if (operation == SyncOperation::kBroadcast) {
    size = 0;
  } else if (size != 0) {
    --size;
  }
  return Fate::kPasses;
}

}  // namespace forksight
