// Lets participants sleep until there may be something for them, and wakes them. A participant that waits sets its bit
// in a map, and sleeps on its own word. A participant that has made something clears one bit, and wakes that waiter.
// Correctness does not depend on the wake: a sleep lasts at most one slice. If a process dies between the two steps,
// its waiter loses only that time. The bit of a dead waiter costs one system call.
//
// At the end of its slice, a waiter looks for dead members, unless another has just done so. Many waiters must not cost
// more than one. So a slice is 50 ms times the number of waiting participants, and at most a second. All waiters
// together wake up 20 times a second, or each wakes up once a second.
#pragma once

#include <cstdint>

#include "ring.hpp"

namespace forksight::ipc::detail {

constexpr std::uint64_t kLookNs = 50'000'000;
constexpr std::uint64_t kMostSliceNs = 1'000'000'000;

// When the slice of `index` ends, on CLOCK_MONOTONIC. It depends on how many participants wait now.
std::uint64_t slice_end_ns(const ring& of, std::uint32_t index, std::uint64_t now_ns);

// Call it after the change that the waiters wait for; pairs with begin_wait(). wake_one() wakes at most one sleeping
// participant.
void wake_one(const ring& of, wait_kind kind);
void wake_all(const ring& of, wait_kind kind);
// Wakes all threads of one participant, whatever they wait for. async-signal-safe
void wake_participant(const ring& of, std::uint32_t index);

// Announces that `index` waits. The caller then looks once more before it sleeps. Returns the value for sleep().
std::uint32_t begin_wait(const ring& of, wait_kind kind, std::uint32_t index);
// until_ns: an instant of CLOCK_MONOTONIC.
void sleep(const ring& of, wait_kind kind, std::uint32_t index, std::uint32_t seen, std::uint64_t until_ns);
void end_wait(const ring& of, wait_kind kind, std::uint32_t index);

}  // namespace forksight::ipc::detail
