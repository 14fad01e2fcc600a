// The records of what has not happened yet: in which order threads take locks (FORKSIGHT_LOCK_ORDER), and for how long
// other threads had a lock that a child needs (FORKSIGHT_PREDICT). Part of the trace format: see format.hpp.
//
// Locks have a number, since an address does not tell one lock from the next that is made there: it is unique in a
// process and the processes that are forked from it. Threads have a life, told by a clock of their process that goes on
// by one whenever a thread is made, joined, or seen for the first time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forksight::trace {

// A thread. Written by whoever makes it.
struct ThreadLifeRecord {
  std::uint64_t creator;  // ref to kThreadLife, 0: not known, or none
  std::uint64_t born;
  std::uint64_t joined;  // changes in place; 0: not joined
  std::uint64_t reserved;
};
static_assert(sizeof(ThreadLifeRecord) == 32);
static_assert(offsetof(ThreadLifeRecord, joined) == 16);

// Another lock that the thread held at the time.
struct OrderGate {
  std::uint64_t number;
  std::uint32_t shared;  // 1: held to read
  std::uint32_t reserved;
};
static_assert(sizeof(OrderGate) == 16);

// A thread that held one lock acquired another, by a call that waits until it has it. One record for each thread, pair
// and set of locks that were held; `last` and `times` change in place. Tail: `gates` OrderGate.
struct LockOrderRecord {
  std::uint64_t life;    // ref to kThreadLife
  std::uint64_t thread;  // ref to kThread
  std::uint64_t held;    // addresses
  std::uint64_t taken;
  std::uint64_t held_number;
  std::uint64_t taken_number;
  std::uint64_t held_stack;  // refs to kStack, 0: none
  std::uint64_t taken_stack;
  std::uint64_t first;  // by the clock of lives
  std::uint64_t last;
  std::uint64_t times;
  std::uint32_t held_kind;  // LockKind
  std::uint32_t taken_kind;
  std::uint32_t gates;
  std::uint32_t reserved;
};
static_assert(sizeof(LockOrderRecord) == 104);
static_assert(offsetof(LockOrderRecord, last) == 72);

// A forked process took a lock that was free at its fork, and that other threads of its parent had had at other times.
// `held_ticks` and `window_ticks` are of one clock: their ratio is what counts.
struct RacyTouchRecord {
  std::uint64_t fork;          // ref to kFork
  std::uint64_t lock;          // address
  std::uint64_t stack;         // ref to kStack of the caller
  std::uint64_t holder;        // ref to kThread: of those threads, the one that had it longest
  std::uint64_t held_stack;    // ref to kStack where that thread took it
  std::uint64_t held_ticks;    // by all threads that lived at the fork but the forking one
  std::uint64_t window_ticks;  // from the first second thread of the process to the fork
  std::uint64_t window_ns;
  std::uint64_t times;    // that they took it
  std::uint32_t threads;  // that did
  std::uint32_t kind;     // LockKind, as the child took it
};
static_assert(sizeof(RacyTouchRecord) == 80);

}  // namespace forksight::trace
