// Records of atfork handlers: the threads that they end, their progress, and what they wait for.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight::trace {

// The shim lists at most this number of handlers in a kHandlers record. So a list of this length may lack some
// handlers.
inline constexpr std::uint32_t kMaxListedHandlers = 128;

// Threads that lived at the beginning of fork() and had ended when all prepare handlers had run. For example, a library
// ends its pool in its prepare handler. Such threads are not lost threads of the fork. Tail: `count` refs (u64) to
// kThread.
struct GoneRecord {
  std::uint64_t fork;  // ref to kFork
  std::uint32_t count;
  std::uint32_t reserved;
};
static_assert(sizeof(GoneRecord) == 16);

enum class HandlerPhase : std::uint32_t { kPrepare = 1, kParent = 2, kChild = 3 };

// The progress of the atfork handlers of one fork, in the process that wrote the record. Parent and child each write
// such a record, before the first handler of the program or of its libraries is called. The thread that runs the
// handlers CHANGES THE RECORD IN PLACE: it sets `running` and `since_ns` before each handler, and clears `running`
// after the handler. If `running` stays set, it names a handler that has not returned. Tail: `count` HandlerTimes, in
// the order of kHandlers. The times of a handler that has not run are 0. If a process forks often, the shim does not
// time all forks. The forks of one thread that are not timed share one record, with `count` 0.
struct HandlerTimes {
  std::uint64_t prepare_ns;
  std::uint64_t parent_ns;
  std::uint64_t child_ns;
};
struct HandlerRunRecord {
  std::uint64_t fork;      // ref to kFork; 0 until all prepare handlers of this fork have run
  std::uint64_t handlers;  // ref to kHandlers
  std::uint64_t stack;     // ref to kStack of the caller of fork, 0: unknown
  std::uint64_t thread;    // ref to kThread of the forking thread, 0 in the child
  std::uint64_t since_ns;  // when the running handler was called (CLOCK_MONOTONIC)
  std::uint32_t running;   // 0: none; else HandlerPhase in the top byte, and below it 1 + the index in kHandlers
  std::uint32_t count;
};
static_assert(sizeof(HandlerTimes) == 24);
static_assert(sizeof(HandlerRunRecord) == 48);
constexpr std::uint32_t pack_running(HandlerPhase phase, std::uint32_t place) {
  return static_cast<std::uint32_t>(phase) << 24U | (place + 1);
}

enum class HandlerWaitKind : std::uint32_t { kLock = 1, kJoin = 2, kCondition = 3 };

// An atfork handler is about to block. The record is written before the call. `done` is set IN PLACE when the call has
// returned.
struct HandlerWaitRecord {
  std::uint64_t run;          // ref to kHandlerRun
  std::uint64_t object;       // address of the lock or condition variable, or thread pointer of the thread to be joined
  std::uint64_t owner;        // ref to kThread of the lock's holder, or of the thread to be joined; 0: not known
  std::uint64_t owner_stack;  // ref to kStack where the holder took the lock, 0: not known
  std::uint64_t stack;        // ref to kStack of the caller
  HandlerWaitKind kind;
  std::uint32_t lock_kind;  // LockKind, with kLock
  std::uint32_t timed;      // 1: the call has a deadline
  std::uint32_t done;
};
static_assert(sizeof(HandlerWaitRecord) == 56);

// A lock that the forking thread holds while one of its prepare handlers is about to wait. An earlier prepare handler
// took the lock: the thread did not hold the lock when the first handler was called. Written after its kHandlerWait.
struct HandlerHeldRecord {
  std::uint64_t wait;   // ref to kHandlerWait
  std::uint64_t lock;   // address
  std::uint64_t stack;  // ref to kStack where the lock was taken; outer frames may have been overwritten
  std::uint32_t kind;   // LockKind
  std::uint32_t reserved;
};
static_assert(sizeof(HandlerHeldRecord) == 32);

}  // namespace forksight::trace
