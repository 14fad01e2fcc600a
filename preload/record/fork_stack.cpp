#include "record/fork_stack.hpp"

#include <string.h>

#include "guest/config.hpp"
#include "loader/modules.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::size_t kForkStackBytes = 16U << 10U;

// True if unwinding from both sites would give the same frames. The values of rbp may differ if neither of them points
// into the stack: then code without frame pointers uses rbp for data, and no outer frame depends on it.
bool is_same_site(const Site& one, const Site& other, std::size_t bytes) {
  const auto is_on_stack = [&](std::uint64_t value) { return value - one.sp < bytes; };
  return one.pc == other.pc && one.sp == other.sp &&
         (one.fp == other.fp || (!is_on_stack(one.fp) && !is_on_stack(other.fp)));
}

// True if unwinding the stack at `sp` would give the same frames as the recorded stack. Words that may be return
// addresses must be equal; other words may differ.
bool is_unwound_alike(std::uint64_t record, const StackBound& bound, std::uint64_t sp) {
  if (!bound.mapped) return false;
  const auto* const recorded = find_record_with<trace::StackRecord>(record, trace::RecordType::kStack, bound.bytes);
  if (recorded == nullptr || recorded->bytes != bound.bytes) return false;
  const auto* then = reinterpret_cast<const std::byte*>(recorded + 1);
  const auto* now = reinterpret_cast<const std::byte*>(sp);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bound.bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    memcpy(&before, then + at, sizeof before);
    memcpy(&after, now + at, sizeof after);
    if (before != after && (find_module(before) != nullptr || find_module(after) != nullptr)) return false;
  }
  return true;
}

}  // namespace

std::uint64_t record_fork_stack(Slot& slot, const Site& site) {
  const StackBound bound = stack_bound(&slot, site.sp, kForkStackBytes);
  // Stacks contain words that were never set. Valgrind's Memcheck reports branches that depend on such words, so under
  // Valgrind no stacks are compared.
  if (!g_config.under_valgrind && slot.last_fork_stack != 0 && is_same_site(slot.last_fork_site, site, bound.bytes) &&
      is_unwound_alike(slot.last_fork_stack, bound, site.sp)) {
    return slot.last_fork_stack;
  }
  slot.last_fork_site = site;
  slot.last_fork_stack = append_stack(site, &slot, kForkStackBytes, false, Importance::kFact);
  return slot.last_fork_stack;
}

}  // namespace forksight
