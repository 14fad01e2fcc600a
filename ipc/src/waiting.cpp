#include "waiting.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <climits>
#include <utility>

#include "process.hpp"

namespace forksight::ipc::detail {
namespace {

// Wakes all threads that sleep on the word. The futex is not private, because several processes share the memory.
void wake(const ring& of, wait_kind kind, std::uint32_t index) {
  shared_word<std::uint32_t>& word = of.participants[index].wake[static_cast<std::size_t>(kind)];
  (void)word.fetch_add(1);
  syscall(SYS_futex, word.address(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::uint64_t bit_of(std::uint32_t index) { return std::uint64_t{1} << (index % 64); }

struct waiter {
  std::uint64_t ticket = 0;
  std::uint32_t index = 0;
  std::uint64_t offered_ns = 0;

  bool came_before(const waiter& other) const {
    return ticket != other.ticket ? ticket < other.ticket : index < other.index;
  }
  // The clocks of two time namespaces may differ. Then an offer may seem to have ended at once.
  bool has_lost_turn(std::uint64_t now_ns) const { return offered_ns != 0 && now_ns - offered_ns > kTurnNs; }
};

waiter waiter_of(const ring& of, wait_kind kind, std::uint32_t index) {
  const participant& entry = of.participants[index];
  const auto k = static_cast<std::size_t>(kind);
  return {entry.ticket[k].load_relaxed(), index, entry.offered_ns[k].load()};
}

// The caller has made something available by a compare-exchange. That compare-exchange and the loads here are
// sequentially consistent. A waiter sets its bit before it looks for something to take. So either this call sees the
// waiter's bit, or the waiter sees what was made available.
template <class Body>
void for_each_waiter(const ring& of, wait_kind kind, Body body) {
  const auto& map = of.head->waiting[static_cast<std::size_t>(kind)];
  for (std::uint32_t w = 0; w < (of.participant_count + 63) / 64; ++w) {
    for (std::uint64_t bits = map[w].load(); bits != 0; bits &= bits - 1) {
      const std::uint32_t index = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (index >= of.participant_count) break;
      body(waiter_of(of, kind, index));
    }
  }
}

// Returns false if the waiter has an offer already. If this process dies after it has stored the offer and before it
// wakes the waiter, the waiter does not notice the offer, and the offer ends after kTurnNs.
bool offer(const ring& of, wait_kind kind, std::uint32_t index, std::uint64_t now_ns) {
  std::uint64_t none = 0;
  auto& offered = of.participants[index].offered_ns[static_cast<std::size_t>(kind)];
  if (!offered.exchange_if(none, std::max<std::uint64_t>(now_ns, 1))) return false;
  wake(of, kind, index);
  return true;
}

}  // namespace

std::uint64_t slice_end_ns(const ring& of, std::uint32_t index, std::uint64_t now_ns) {
  std::uint64_t waiting = 0;
  for (const auto& map : of.head->waiting) {
    for (std::uint32_t w = 0; w < (of.participant_count + 63) / 64; ++w) {
      // Most words are zero. They are left out, because std::popcount is a call if the compiler may not use the
      // instruction.
      if (const std::uint64_t bits = map[w].load_relaxed(); bits != 0) {
        waiting += static_cast<std::uint64_t>(std::popcount(bits));
      }
    }
  }
  const std::uint64_t slice = std::min(kMostSliceNs, kLookNs * std::max<std::uint64_t>(waiting, 1));
  if (slice == kLookNs) return now_ns + slice;
  // Each member wakes up at its own moment within the slice, so that the looks of all members are spread over the
  // slice. The moments are multiples of the golden ratio modulo 1, which are far from each other for any number of
  // members.
  const std::uint64_t own = ((index * 0x9e3779b9ULL) & 0xffffffffULL) * slice >> 32;
  const std::uint64_t left = (own + slice - now_ns % slice) % slice;
  // The coarse clock is late by up to a tick. So when the sleep until this member's moment has ended, the clock may
  // still show a time before that moment. Therefore, if the moment is less than a tick away, the next moment is used.
  return now_ns + (left < kTickNs ? left + slice : left);
}

void wake_one(const ring& of, wait_kind kind) {
  std::uint64_t now_ns = 0;
  for (;;) {
    waiter first;
    bool has_first = false;
    for_each_waiter(of, kind, [&](const waiter& one) {
      if (one.offered_ns != 0 || (has_first && !one.came_before(first))) return;
      first = one;
      has_first = true;
    });
    if (!has_first) return;
    if (now_ns == 0) now_ns = coarse_ns();
    // If offer() fails, another process has made an offer to that waiter.
    if (offer(of, kind, first.index, now_ns)) return;
  }
}

void wake_all(const ring& of, wait_kind kind) {
  for_each_waiter(of, kind, [&](const waiter& one) {
    if (!offer(of, kind, one.index, coarse_ns())) wake(of, kind, one.index);
  });
}

void wake_participant(const ring& of, std::uint32_t index) {
  for (const wait_kind kind : {wait_kind::message, wait_kind::slot, wait_kind::buffer}) wake(of, kind, index);
}

bool has_turn(const ring& of, wait_kind kind, std::uint32_t index, std::uint64_t now_ns) {
  waiter self{~std::uint64_t{0}, index, 0};
  const auto& map = of.head->waiting[static_cast<std::size_t>(kind)];
  if ((map[index / 64].load() & bit_of(index)) != 0) self = waiter_of(of, kind, index);
  std::uint32_t ahead = 0;
  for_each_waiter(of, kind, [&](const waiter& one) {
    if (one.index != index && one.came_before(self) && !one.has_lost_turn(now_ns)) ++ahead;
  });
  return ahead == 0 || of.count_available(kind, ahead + 1) > ahead;
}

std::uint64_t pass_on(const ring& of, wait_kind kind, std::uint64_t now_ns) {
  bool does_any = false;
  for_each_waiter(of, kind, [&](const waiter&) { does_any = true; });
  if (!does_any) return 0;  // avoids the list below, which has 6 KiB
  std::array<waiter, kMaxParticipants> all;
  std::uint32_t count = 0;
  for_each_waiter(of, kind, [&](const waiter& one) {
    if (!one.has_lost_turn(now_ns)) all[count++] = one;
  });
  if (count == 0) return 0;
  const std::uint32_t available = of.count_available(kind, count);
  auto* const end = all.data() + std::min(available, count);
  std::partial_sort(all.data(), end, all.data() + count,
                    [](const waiter& one, const waiter& other) { return one.came_before(other); });
  std::uint64_t last_ns = 0;
  for (const waiter* one = all.data(); one != end; ++one) {
    if (one->offered_ns == 0) (void)offer(of, kind, one->index, now_ns);
    last_ns = std::max(last_ns, one->offered_ns == 0 ? now_ns : one->offered_ns);
  }
  return last_ns == 0 ? 0 : last_ns + kTurnNs;
}

std::uint32_t begin_wait(const ring& of, wait_kind kind, std::uint32_t index) {
  const auto k = static_cast<std::size_t>(kind);
  participant& entry = of.participants[index];
  const std::uint32_t seen = entry.wake[k].load();
  auto& map = of.head->waiting[k][index / 64];
  if ((map.load() & bit_of(index)) == 0) {
    take_new_ticket(of, kind, index);
    (void)map.fetch_or(bit_of(index));
  } else {
    // Removes the former offer. The operation is sequentially consistent, and comes before the caller's next look.
    // Another process may make something available and still see the former offer. Then the caller's next look sees
    // what that process has made available.
    (void)entry.offered_ns[k].fetch_and(0);
  }
  return seen;
}

void take_new_ticket(const ring& of, wait_kind kind, std::uint32_t index) {
  const auto k = static_cast<std::size_t>(kind);
  participant& entry = of.participants[index];
  entry.ticket[k].store_relaxed(of.head->tickets[k].fetch_add(1) + 1);
  (void)entry.offered_ns[k].fetch_and(0);
}

bool sleep(const ring& of, wait_kind kind, std::uint32_t index, std::uint32_t seen, std::uint64_t until_ns) {
  // The timeout is an absolute time, which the caller has computed with the cheap coarse clock.
  const timespec until{static_cast<time_t>(until_ns / 1'000'000'000), static_cast<long>(until_ns % 1'000'000'000)};
  shared_word<std::uint32_t>& word = of.participants[index].wake[static_cast<std::size_t>(kind)];
  return syscall(SYS_futex, word.address(), FUTEX_WAIT_BITSET, seen, &until, nullptr, FUTEX_BITSET_MATCH_ANY) != 0 &&
         errno == ETIMEDOUT;
}

void end_wait(const ring& of, wait_kind kind, std::uint32_t index) {
  auto& map = of.head->waiting[static_cast<std::size_t>(kind)][index / 64];
  if ((map.load_relaxed() & bit_of(index)) != 0) (void)map.fetch_and(~bit_of(index));
}

}  // namespace forksight::ipc::detail
