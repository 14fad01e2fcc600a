// Sleeping until there may be something, and waking who sleeps. A participant that waits says so by its bit of a map,
// and sleeps on a word of its own; who has made something takes one bit away and wakes that one. Nothing depends on it:
// a sleep lasts a slice at most, so what is lost with somebody who died between the two costs its waiter that long, and
// the bit of a dead waiter costs one system call.
//
// Waiters are woken in turn, in the order of their places. One that was woken and found that another had been faster is
// the next again. Who is served again and again while others wait has kTurns in a row, and then sleeps until it is woken
// in its turn, or for kTurnNs if nothing wakes it: so each waiter is passed by at most kTurns messages of each other. One
// that slept in vain has twice as many turns the next time: what others do not take, because they are stopped or dead, is
// not waited for again and again.
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

constexpr std::uint32_t kTurns = 16;
constexpr std::uint64_t kTurnNs = 50'000'000;

// From the first look that found nothing until it is served, or gives up.
void get_in_line(const ring& of, wait_kind kind, std::uint32_t index);
void leave_line(const ring& of, wait_kind kind, std::uint32_t index);
// Is another than `index` in line.
bool others_wait(const ring& of, wait_kind kind, std::uint32_t index);
// `index` was woken in vain.
void wake_next(const ring& of, wait_kind kind, std::uint32_t index);

// When the slice of `index` ends, by how many wait now; of CLOCK_MONOTONIC.
std::uint64_t slice_end_ns(const ring& of, std::uint32_t index, std::uint64_t now_ns);

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
