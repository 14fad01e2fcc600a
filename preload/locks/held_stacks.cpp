#include "locks/held_stacks.hpp"

#include <string.h>

#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::size_t kHeldStackBytes = 16U << 10U;

// A stack is copied here first, and then compared with a recorded stack. The buffer has pages of its own, so that the
// kernel does not copy them for a child that records no stack.
alignas(4096) constinit std::byte g_bytes[kHeldStackBytes] = {};
// True while the buffer is in use. If a signal handler forks meanwhile, g_in_use is true in the child. Then the child
// records each stack without comparing it.
FORKSIGHT_WRITTEN_AT_FORK constinit bool g_in_use = false;

std::atomic<std::uint64_t>& entry_of(trace::RecentRecord& recent, const Site& site) {
  const std::uint64_t mixed = (site.pc ^ site.sp >> 4U) * 0x9e3779b97f4a7c15;
  return recent.stacks[mixed >> 32U & (trace::kRecentStacks - 1)];
}

bool is_recorded(std::uint64_t reference, const Site& site, std::size_t bytes, std::uint32_t flags) {
  const auto* const stack = find_record_with<trace::StackRecord>(reference, trace::RecordType::kStack, bytes);
  return stack != nullptr && stack->pc == site.pc && stack->sp == site.sp && stack->fp == site.fp &&
         stack->bytes == bytes && stack->flags == flags && memcmp(stack + 1, g_bytes, bytes) == 0;
}

}  // namespace

std::uint64_t record_held_stack(const Site& site, const Slot& holder, bool is_forking_thread) {
  trace::RecentRecord* const recent = recent_stacks();
  if (recent == nullptr) return 0;
  if (g_in_use) return append_stack(site, &holder, kHeldStackBytes, !is_forking_thread, Importance::kFact);
  g_in_use = true;
  const StackBound bound = stack_bound(&holder, site.sp, kHeldStackBytes);
  const std::uint32_t bytes = read_stack(site.sp, g_bytes, bound);
  const std::uint32_t flags =
      (bound.cut || bytes < bound.bytes ? trace::kStackCut : 0U) | (is_forking_thread ? 0U : trace::kStackFrozen);
  std::atomic<std::uint64_t>& entry = entry_of(*recent, site);
  std::uint64_t reference = entry.load(std::memory_order_acquire);
  if (!is_recorded(reference, site, bytes, flags)) {
    reference = append_saved_stack(site, g_bytes, bytes, flags);
    // Pairs with the load above in another child: that child sees a complete record.
    if (reference != 0) entry.store(reference, std::memory_order_release);
  }
  g_in_use = false;
  return reference;
}

}  // namespace forksight
