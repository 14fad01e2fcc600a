// Sleeping until there may be something, and waking who sleeps. A participant that waits says so by its bit of a map,
// and sleeps on a word of its own; who has made something takes one bit away and wakes that one. Nothing depends on it:
// a sleep lasts a slice at most, so what is lost with somebody who died between the two costs its waiter 50 ms, and the
// bit of a dead waiter costs one system call.
#pragma once

#include <cstdint>

#include "ring.hpp"

namespace forksight::ipc::detail {

constexpr std::uint64_t kSliceNs = 50'000'000;

// After the change that the waiters wait for; pairs with begin_wait(). At most one participant goes on.
void wake_one(const ring& of, wait_kind kind);
void wake_all(const ring& of, wait_kind kind);

// Says that `index` waits, before it looks once more; the value is for sleep().
std::uint32_t begin_wait(const ring& of, wait_kind kind, std::uint32_t index);
// until_ns: of CLOCK_MONOTONIC.
enum class woken : std::uint8_t { yes, slice_over };
woken sleep(const ring& of, wait_kind kind, std::uint32_t index, std::uint32_t seen, std::uint64_t until_ns);
void end_wait(const ring& of, wait_kind kind, std::uint32_t index);

}  // namespace forksight::ipc::detail
