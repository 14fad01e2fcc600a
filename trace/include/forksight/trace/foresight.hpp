// Records for the prediction of hangs that did not happen in this run. The records say in which order threads take
// locks (FORKSIGHT_LOCK_ORDER), and how long other threads held a lock that a child takes (FORKSIGHT_PREDICT). Part of
// the trace format: see format.hpp.
//   Locks have numbers, because a later lock can have the same address as an earlier one. A number is unique in a
//   process and the processes that are forked from it.
//   A counter shows in which order two threads act. It belongs to the process, and advances by one whenever a thread
//   is made, joined, or seen for the first time. The moment of a thread is the value of this counter when the thread
//   began, or when it last made or joined another thread. If thread A makes thread B, then everything that A does at a
//   moment before B's birth happens before the start of B. If A joins B, then everything that A does at the moment of
//   the join, or later, happens after the end of B. In all other cases, the moments of two threads do not show the
//   order of their actions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forksight::trace {

enum LifeFlag : std::uint32_t {
  kLifeBegun = 1,       // the thread runs, or has run
  kLifeUnfollowed = 2,  // it is not known whether the thread was joined: the table had no room for its pthread_t
};

// A thread. The thread's creator writes this record. If the creator is not known, the thread itself writes it.
struct ThreadLifeRecord {
  std::uint64_t creator;  // ref to kThreadLife, 0: not known, or none
  std::uint64_t born;     // the counter at the birth; this is also the creator's new moment
  std::uint64_t joined;   // the counter at the join, also the joiner's new moment; 0: not joined; changes in place
  std::uint64_t joiner;   // ref to kThreadLife; changes in place, before `joined` does
  std::uint32_t flags;    // LifeFlag; changes in place
  std::uint32_t reserved;
};
static_assert(sizeof(ThreadLifeRecord) == 40);
static_assert(offsetof(ThreadLifeRecord, joined) == 16);

// Another lock that the thread held while it acquired a lock.
struct OrderGate {
  std::uint64_t number;
  std::uint32_t shared;  // 1: held to read
  std::uint32_t inner;   // 1: taken after LockOrderRecord::held, and no orders are recorded for locks of its kind
};
static_assert(sizeof(OrderGate) == 16);

inline constexpr std::uint32_t kOrderMoments = 8;

// A thread that held one lock acquired another, by a call that waits until it has the lock. There is one record for
// each combination of thread, pair of locks, and set of further locks that the thread holds. `times`, `moments` and
// `used` change in place. Tail: `gates` OrderGate.
//   If a thread write-locks a rwlock that prefers writers, there is a record even if the thread holds no lock with a
//   number, because readers wait while a writer waits. Then `held` and `held_number` are 0.
struct LockOrderRecord {
  std::uint64_t life;    // ref to kThreadLife
  std::uint64_t thread;  // ref to kThread
  std::uint64_t held;    // addresses
  std::uint64_t taken;
  std::uint64_t held_number;
  std::uint64_t taken_number;
  std::uint64_t held_stack;  // refs to kStack, 0: none
  std::uint64_t taken_stack;
  std::uint64_t times;
  // The moments of these acquisitions. The last used entry is the latest moment. If there are more moments than
  // entries, the other entries have the earliest moments.
  std::uint64_t moments[kOrderMoments];
  std::uint32_t used;       // number of used entries of `moments`
  std::uint32_t held_kind;  // LockKind
  std::uint32_t taken_kind;
  std::uint32_t gates;
  std::uint32_t flags;  // OrderFlag
  std::uint32_t reserved;
};
static_assert(sizeof(LockOrderRecord) == 160);

enum OrderFlag : std::uint32_t {
  kOrderQueues = 1,  // `taken` is a rwlock that prefers writers: a reader waits behind a writer that waits
};

inline constexpr std::uint32_t kTimeSlices = 16;

// A forked process took a lock that was free at its fork, and that other threads of its parent had held at other times.
// All ticks come from the same clock, and only their ratios matter. A thread of the parent counts if the fork could
// have found it holding the lock. So a thread does not count if the forking thread had joined it, or held a gate under
// which that thread always took the lock. Threads that ended before the fork count, too, except in `threads`. Several
// readers can hold a lock at the same time. Therefore `held_ticks` and `slices` contain, of all readers, only the one
// that held the lock longest.
struct RacyTouchRecord {
  std::uint64_t fork;          // ref to kFork
  std::uint64_t lock;          // address
  std::uint64_t stack;         // ref to kStack of the caller
  std::uint64_t holder;        // ref to kThread: the longest holder among the threads that lived at the fork
  std::uint64_t held_stack;    // ref to kStack where that thread took the lock
  std::uint64_t held_ticks;    // sum of the times for which the threads that count held the lock
  std::uint64_t window_ticks;  // the window: from the creation of the process's second thread to the fork
  std::uint64_t window_ns;
  std::uint64_t times;                // how often the threads that count took the lock
  std::uint32_t threads;              // number of threads that took the lock and lived at the fork
  std::uint32_t kind;                 // LockKind of the child's acquisition
  std::uint64_t slice_ticks;          // length of one slice
  std::uint64_t slices[kTimeSlices];  // held_ticks of each slice of the window; slices[0] is the first slice
};
static_assert(sizeof(RacyTouchRecord) == 216);

}  // namespace forksight::trace
