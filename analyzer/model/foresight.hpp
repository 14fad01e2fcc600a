// What has not happened, and may: orders in which threads take locks, and locks that a child took luckily. Part of the
// model: see model.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/ids.hpp"
#include "model/stack.hpp"

namespace forksight::model {

// When a thread lived, by a clock of its process that goes on by one whenever a thread is made or joined. A thread's
// moment is what it said when the thread last made or joined another one, or began: moments of two threads say nothing
// about each other, but for the births and joins between them (diagnose/precedence.hpp).
struct ThreadLife {
  ProcessId process = 0;
  std::optional<LifeId> creator;
  std::uint64_t born = 0;        // the creator's moment from then on
  std::optional<LifeId> joiner;  // none: not joined, or nobody knows by whom
  std::uint64_t joined = 0;      // the joiner's moment from then on
  bool is_followed = true;       // false: it may have been joined without a word
};

// One of several locks that a thread holds. The number tells it from another one at the same address.
struct OrderedLock {
  std::uint64_t number = 0;
  bool shared = false;  // to read
};

// A thread held a lock and waited for another one, and got it.
struct LockOrder {
  LifeId life = 0;
  ThreadId thread = 0;
  OrderedLock held_as;  // number 0: none; it takes a rwlock that queues, to write
  OrderedLock taken_as;
  LockId held = 0;
  LockId taken = 0;
  Stack held_at;
  Stack taken_at;
  std::vector<OrderedLock> gates;      // what else it held
  std::vector<std::uint64_t> moments;  // of its thread, when it did; if there were more, some are left out
  std::uint64_t times = 1;
  bool queues = false;  // `taken` is a rwlock of which a reader waits behind a writer that waits
};

// A part of some time, as fractions of the whole.
struct TimeSlice {
  double held = 0;
  double time = 0;
};

// A forked process took a lock that was free at its fork by chance.
struct RacyTouch {
  ForkId fork = 0;
  ProcessId process = 0;
  std::int32_t tid = 0;
  LockId lock = 0;
  ThreadId holder = 0;  // of the parent's other threads, the one that had it longest
  Stack stack;
  Stack held_at;
  double share = 0;               // of the window before the fork that they had it: 0 to 1
  std::vector<TimeSlice> slices;  // of that window, in the order of time
  std::uint64_t window_ns = 0;
  std::uint64_t times = 0;
  std::uint32_t threads = 0;
};

}  // namespace forksight::model
