// What shows that a hang is possible although none has happened. One kind is the order in which a thread took two
// locks. The other kind is a lock that was free at a fork only by chance, and that the child then took. Part of the
// model: see model.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/ids.hpp"
#include "model/stack.hpp"

namespace forksight::model {

// The beginning and the end of a thread, by a logical clock of its process. The clock advances by one whenever a thread
// is created or joined. The moment of a thread is the value of the clock when the thread began, or when it last created
// or joined another thread. If one thread acts at its moment 3 and another thread acts at its moment 5, the act at
// moment 3 need not come first. Only creations and joins order the acts of two threads (diagnose/precedence.hpp).
struct ThreadLife {
  ProcessId process = 0;
  std::optional<LifeId> creator;
  std::uint64_t born = 0;        // the creator's moment just after the creator made this thread
  std::optional<LifeId> joiner;  // none: the thread was not joined, or the joiner is not known
  std::uint64_t joined = 0;      // the joiner's moment just after the joiner joined this thread
  bool is_followed = true;       // false: the thread may have been joined without a record
};

// A lock in a LockOrder. Its number distinguishes it from a lock that is at the same address at another time.
struct OrderedLock {
  std::uint64_t number = 0;
  bool shared = false;  // held only to read
};

// A thread held one lock, and took another one by a call that waits for the lock.
struct LockOrder {
  LifeId life = 0;
  ThreadId thread = 0;
  // Number 0: the thread held no numbered lock. Then `queues` is set, and the thread took `taken` for writing.
  OrderedLock held_as;
  OrderedLock taken_as;
  LockId held = 0;
  LockId taken = 0;
  Stack held_at;
  Stack taken_at;
  std::vector<OrderedLock> gates;  // further locks that the thread held
  // The moments (see ThreadLife) at which the thread took `taken`. If there were very many, some are left out.
  std::vector<std::uint64_t> moments;
  std::uint64_t times = 1;
  bool queues = false;  // `taken` is a rwlock whose readers wait behind a waiting writer
};

// A part of the window of a RacyTouch (below). `time` is the length of this part. `held` is how long the lock was held
// during this part. Both are fractions of the whole window.
struct TimeSlice {
  double held = 0;
  double time = 0;
};

// A forked process took a lock that was free at its fork only by chance.
struct RacyTouch {
  ForkId fork = 0;
  ProcessId process = 0;
  std::int32_t tid = 0;
  LockId lock = 0;
  // the thread that held the lock for the longest time, among the parent's other threads that lived at the fork
  ThreadId holder = 0;
  Stack stack;
  Stack held_at;
  double share = 0;               // the part of the window in which the parent's other threads held the lock: 0 to 1
  std::vector<TimeSlice> slices;  // the parts of the window, in order of time
  // The window lasts from the moment when the parent made its second thread until the fork.
  std::uint64_t window_ns = 0;
  std::uint64_t times = 0;    // how often the parent's other threads took the lock in the window
  std::uint32_t threads = 0;  // the number of threads that took the lock and lived at the fork
};

}  // namespace forksight::model
