// Sleeping until there may be something, and waking who sleeps. A participant that waits says so by its bit of a map,
// and sleeps on a word of its own; who has made something takes one bit away and wakes that one. Nothing depends on it:
// a sleep lasts a slice at most, so what is lost with somebody who died between the two costs its waiter that long, and
// the bit of a dead waiter costs one system call.
//
// At the end of its slice a waiter looks who has died, unless another has just done so. So that many waiters cost no
// more than one, a slice is 50 ms for each participant that waits, and a second at most: all together they wake up 20
// times a second, or once a second each.
#pragma once

#include <cstdint>

#include "ring.hpp"

namespace forksight::ipc::detail {

constexpr std::uint64_t kLookNs = 50'000'000;
constexpr std::uint64_t kMostSliceNs = 1'000'000'000;

// When the slice of `index` ends, by how many wait now; of CLOCK_MONOTONIC.
std::uint64_t slice_end_ns(const ring& of, std::uint32_t index, std::uint64_t now_ns);

// After the change that the waiters wait for; pairs with begin_wait(). At most one participant goes on.
void wake_one(const ring& of, wait_kind kind);
void wake_all(const ring& of, wait_kind kind);
// All threads of one participant, whatever they wait for. async-signal-safe
void wake_participant(const ring& of, std::uint32_t index);

// Says that `index` waits, before it looks once more; the value is for sleep().
std::uint32_t begin_wait(const ring& of, wait_kind kind, std::uint32_t index);
// until_ns: of CLOCK_MONOTONIC.
void sleep(const ring& of, wait_kind kind, std::uint32_t index, std::uint32_t seen, std::uint64_t until_ns);
void end_wait(const ring& of, wait_kind kind, std::uint32_t index);

}  // namespace forksight::ipc::detail
