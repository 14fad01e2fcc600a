// pthread_cond_t: sysdeps/nptl/bits/thread-shared-types.h, nptl/pthread_cond_common.c. Waiters are in one of two
// groups: G1, which gets the signals, and G2, which new waiters join.
//   Up to glibc 2.40 each group counts the threads inside of it (__g_refs), and a signal that switches groups waits
//   until the old G1 is empty. glibc 2.41 has no such counts. In its layout the fields after the counts have offsets
//   that are eight bytes lower, and __g1_start has lost its former lowest bit. The branches of 2.38, 2.39 and 2.40 got
//   the new layout after their release. Distributions have added the new layout to older versions. So the version does
//   not show which layout a libc has. The layout can be found out from the place where pthread_cond_init() stores a
//   flag, and from the first word that pthread_cond_signal() reads.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight::abi {

struct ConditionLayout {
  std::uint8_t references;  // 0 if the layout has no such field
  std::uint8_t sizes;
  std::uint8_t g1_size;
  std::uint8_t wrefs;
  std::uint8_t signals;
  std::uint8_t start_shift;
};

inline constexpr ConditionLayout kConditionWithReferences{16, 24, 32, 36, 40, 1};
inline constexpr ConditionLayout kConditionWithoutReferences{0, 16, 24, 28, 32, 0};
inline constexpr std::size_t kConditionBytes = 48;

// Returns null if the kind is not known.
constexpr const ConditionLayout* layout_of(ConditionKind kind) {
  switch (kind) {
    case ConditionKind::kWithReferences: return &kConditionWithReferences;
    case ConditionKind::kWithoutReferences: return &kConditionWithoutReferences;
    case ConditionKind::kUnknown: break;
  }
  return nullptr;
}

constexpr ConditionKind kind_by_wrefs(std::size_t offset) {
  if (offset == kConditionWithReferences.wrefs) return ConditionKind::kWithReferences;
  return offset == kConditionWithoutReferences.wrefs ? ConditionKind::kWithoutReferences : ConditionKind::kUnknown;
}

// A condition variable of either layout. All zero: no thread has waited for it yet.
struct Condition {
  std::uint64_t wseq;           // number of waiters so far << 1 | index of G2
  std::uint64_t g1_start;       // position of G1's first waiter
  std::uint32_t references[2];  // number of waiters inside of each group << 1; 0 if the layout has no such field
  std::uint32_t sizes[2];       // waiters not yet signalled; for G2: 0 minus the number of waiters that gave up
  std::uint32_t g1_size;        // (number of waiters in G1 when G1 began) << 2
  std::uint32_t wrefs;          // number of waiters << 3 | pthread_cond_destroy() waits | clock | process-shared

  static constexpr std::uint32_t kShared = 1;
  static constexpr std::uint32_t kClock = 2;

  constexpr std::uint32_t waiters() const { return wrefs >> 3U; }
  constexpr std::uint64_t position() const { return wseq >> 1U; }
  constexpr bool is_shared() const { return (wrefs & kShared) != 0; }
  constexpr std::uint32_t g1() const { return static_cast<std::uint32_t>(wseq & 1U) ^ 1U; }
  constexpr std::uint64_t end_of_g1() const { return g1_start + (g1_size >> 2U); }
};

// Reads a condition variable from `memory`, which has kConditionBytes bytes.
inline Condition load_condition(const ConditionLayout& layout, const void* memory) {
  const auto* const bytes = static_cast<const unsigned char*>(memory);
  const auto pair = [&](std::size_t at, std::uint32_t(&to)[2]) { __builtin_memcpy(to, bytes + at, sizeof to); };
  Condition condition{};
  condition.wseq = load<std::uint64_t>(bytes);
  condition.g1_start = load<std::uint64_t>(bytes + 8) >> layout.start_shift;
  if (layout.references != 0) pair(layout.references, condition.references);
  pair(layout.sizes, condition.sizes);
  condition.g1_size = load<std::uint32_t>(bytes + layout.g1_size);
  condition.wrefs = load<std::uint32_t>(bytes + layout.wrefs);
  return condition;
}

// Writes the fields of `condition` to `memory`. The rest of the memory, which contains the signals, stays unchanged.
inline void store_condition(const ConditionLayout& layout, const Condition& condition, void* memory) {
  auto* const bytes = static_cast<unsigned char*>(memory);
  const auto put = [&](std::size_t at, const auto& value) { __builtin_memcpy(bytes + at, &value, sizeof value); };
  put(0, condition.wseq);
  put(8, condition.g1_start << layout.start_shift);
  if (layout.references != 0) put(layout.references, condition.references);
  put(layout.sizes, condition.sizes);
  put(layout.g1_size, condition.g1_size);
  put(layout.wrefs, condition.wrefs);
}

}  // namespace forksight::abi
