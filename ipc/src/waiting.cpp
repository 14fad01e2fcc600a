#include "waiting.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>

namespace forksight::ipc::detail {
namespace {

// Wakes all threads that sleep on the word. The futex is not private, because several processes share the memory.
// Returns how many threads slept.
long futex_wake(shared_word<std::uint32_t>& word) {
  return syscall(SYS_futex, word.address(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Wakes one participant. True: one of its threads slept. False: it is dead, or was awake.
bool wake(const ring& of, wait_kind kind, std::uint32_t index) {
  shared_word<std::uint32_t>& word = of.participants[index].wake[static_cast<std::size_t>(kind)];
  (void)word.fetch_add(1);
  return futex_wake(word) > 0;
}

std::uint64_t bit_of(std::uint32_t index) { return std::uint64_t{1} << (index % 64); }

// Takes waiters out of the map and wakes them: all of them, or, without `all`, until one of them really slept.
void wake_waiters(const ring& of, wait_kind kind, bool all) {
  auto& map = of.head->waiting[static_cast<std::size_t>(kind)];
  for (std::uint32_t w = 0; w < (of.participant_count + 63) / 64; ++w) {
    // This load is sequentially consistent, and so is the compare-exchange before it. A waiter sets its bit and then
    // looks again. So either this load sees the bit, or the waiter sees the change.
    std::uint64_t bits = map[w].load();
    while (bits != 0) {
      const std::uint32_t index = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      bits &= bits - 1;
      if (index >= of.participant_count) break;
      // Another process has taken the bit, and wakes that waiter.
      if ((map[w].fetch_and(~bit_of(index)) & bit_of(index)) == 0) continue;
      if (wake(of, kind, index) && !all) return;
    }
  }
}

}  // namespace

std::uint64_t slice_end_ns(const ring& of, std::uint32_t index, std::uint64_t now_ns) {
  std::uint64_t waiting = 0;
  for (const auto& map : of.head->waiting) {
    for (std::uint32_t w = 0; w < (of.participant_count + 63) / 64; ++w) {
      waiting += static_cast<std::uint64_t>(std::popcount(map[w].load_relaxed()));
    }
  }
  const std::uint64_t slice = std::min(kMostSliceNs, kLookNs * std::max<std::uint64_t>(waiting, 1));
  if (slice == kLookNs) return now_ns + slice;
  // Each member has its own instant within the slice, so that some look while others sleep. The fractions of the golden
  // ratio lie far from each other for any number of members.
  const std::uint64_t own = ((index * 0x9e3779b9ULL) & 0xffffffffULL) * slice >> 32;
  const std::uint64_t left = (own + slice - now_ns % slice) % slice;
  return now_ns + (left < slice / 2 ? left + slice : left);
}

void wake_one(const ring& of, wait_kind kind) { wake_waiters(of, kind, false); }
void wake_all(const ring& of, wait_kind kind) { wake_waiters(of, kind, true); }
void wake_participant(const ring& of, std::uint32_t index) {
  for (const wait_kind kind : {wait_kind::message, wait_kind::slot, wait_kind::buffer}) (void)wake(of, kind, index);
}

std::uint32_t begin_wait(const ring& of, wait_kind kind, std::uint32_t index) {
  const std::uint32_t seen = of.participants[index].wake[static_cast<std::size_t>(kind)].load();
  (void)of.head->waiting[static_cast<std::size_t>(kind)][index / 64].fetch_or(bit_of(index));
  return seen;
}

void sleep(const ring& of, wait_kind kind, std::uint32_t index, std::uint32_t seen, std::uint64_t until_ns) {
  // Passes an instant and not a span. So the kernel need not read the clock, and the caller can use its cheap clock.
  const timespec until{static_cast<time_t>(until_ns / 1'000'000'000), static_cast<long>(until_ns % 1'000'000'000)};
  shared_word<std::uint32_t>& word = of.participants[index].wake[static_cast<std::size_t>(kind)];
  syscall(SYS_futex, word.address(), FUTEX_WAIT_BITSET, seen, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void end_wait(const ring& of, wait_kind kind, std::uint32_t index) {
  auto& map = of.head->waiting[static_cast<std::size_t>(kind)][index / 64];
  if ((map.load_relaxed() & bit_of(index)) != 0) (void)map.fetch_and(~bit_of(index));
}

}  // namespace forksight::ipc::detail
