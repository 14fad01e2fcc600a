// Lets participants sleep until something may be available, and wakes them. A waiting participant sets its bit in a
// map, and sleeps on a word of its own (a futex). No message is lost or delivered twice because of the map and these
// words, whatever they contain: only the words of slots and buffers decide that. But the map and these words decide who
// is served, and when. A participant that finds others waiting may take nothing although something is there. A call
// that does not wait then returns `timeout`. A sleep lasts at most a slice (see below). At the end of a slice of 50 ms
// or more, a waiter tries to take something, whatever the others have written. So if a process dies before it wakes a
// waiter, the waiter loses one slice, or two slices if the first one is shorter than 50 ms.
//
// Waiters are served in turn. When a participant begins to wait, it takes a ticket: a number that is higher than all
// earlier ones. When a participant has made something available, it makes an offer to the waiter with the lowest ticket
// that has no offer yet. It writes the time of the offer into the waiter's entry, and wakes the waiter. If other
// participants wait, a participant takes something only if enough is left for each waiter with a lower ticket. If a
// waiter does not use its offer for kTurnNs, it is stopped, dead, or gets no processor time. Then the others ignore
// this waiter until it looks again. The waiter keeps its ticket. The number of available things is computed from hints,
// which may be out of date.
//
// At the end of its slice, a waiter looks for dead members if no other member has just done so. Many waiters together
// must not use more processor time than one. So a slice is 50 ms times the number of waiting participants, and at most
// 3 s. Up to 60 waiters together wake up 20 times a second. With more waiters, each wakes up once in 3 s. Each waiter
// has its own moment in the slice. A waiter that was woken and waits again sleeps until its next moment, however near
// that moment is. So even after all waiters were woken at once, their looks stay spread over the slice.
#pragma once

#include <cstdint>

#include "ring.hpp"

namespace forksight::ipc::detail {

constexpr std::uint64_t kLookNs = 50'000'000;
constexpr std::uint64_t kMostSliceNs = 3'000'000'000;
constexpr std::uint64_t kTurnNs = 50'000'000;

// The time on CLOCK_MONOTONIC at which the slice of participant `index` ends. The length of the slice depends on how
// many participants wait now.
std::uint64_t slice_end_ns(const ring& of, std::uint32_t index, std::uint64_t now_ns);

// Makes one offer, to the first waiter that has none. Call this after making something available. This call pairs with
// begin_wait().
void wake_one(const ring& of, wait_kind kind);
void wake_all(const ring& of, wait_kind kind);
// Wakes all threads of one participant, whatever they wait for. Async-signal-safe.
void wake_participant(const ring& of, std::uint32_t index);

inline bool does_anyone_wait(const ring& of, wait_kind kind) {
  const auto& map = of.head->waiting[static_cast<std::size_t>(kind)];
  std::uint64_t bits = 0;
  for (std::uint32_t w = 0; w < (of.participant_count + 63) / 64; ++w) bits |= map[w].load_relaxed();
  return bits != 0;
}
// True if enough is available for participant `index` and for all waiters with a lower ticket. A participant that does
// not wait yet counts as the last waiter.
bool has_turn(const ring& of, wait_kind kind, std::uint32_t index, std::uint64_t now_ns);
// Offers what is available to the waiters whose turn it is. Returns the time at which all of their offers have ended; 0
// if they have no offers.
std::uint64_t pass_on(const ring& of, wait_kind kind, std::uint64_t now_ns);

// Records that participant `index` waits and has no offer. After this call, the caller must look once more before it
// sleeps. Returns the value `seen` for sleep(). The first call since end_wait() takes a ticket.
std::uint32_t begin_wait(const ring& of, wait_kind kind, std::uint32_t index);
// Puts a waiter behind the others. This is called when one of its threads was served and another one still waits.
void take_new_ticket(const ring& of, wait_kind kind, std::uint32_t index);
// Sleeps until another thread wakes the participant, or until the time `until_ns` of CLOCK_MONOTONIC. Returns true if
// that time has come without a wake-up.
bool sleep(const ring& of, wait_kind kind, std::uint32_t index, std::uint32_t seen, std::uint64_t until_ns);
void end_wait(const ring& of, wait_kind kind, std::uint32_t index);

}  // namespace forksight::ipc::detail
