// What a thread was seen to wait for from outside, and who could end that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/stack.hpp"

namespace forksight::model {

enum class MutexType { kNormal, kRecursive, kErrorcheck, kAdaptive, kUnknown };

enum class WaitKind {
  kUnknown,
  kRunning,
  kFutex,
  kWaitChild,
  kPipeRead,
  kPoll,
  kSleep,
  kOther,
  kPipeWrite,
  kSocketRead,
  kSocketWrite,
  kFileLock,  // flock, or fcntl with F_SETLKW
  kEventfd,
  kVfork,   // for its child to exec or to end
  kTraced,  // stopped for its tracer
};

// What a futex word is part of, as far as the bytes around it tell.
enum class FutexUse { kUnknown, kMutex, kRwlockRead, kRwlockWrite, kJoin };

// Who could end a wait.
struct Waker {
  std::int32_t pid = 0;
  std::int32_t tid = 0;  // 0: any thread of that process
  std::int32_t fd = -1;  // the descriptor by which it could
  std::string via;       // "mutex", "join", "wait4", "pipe", "socket", "flock" ...
};

// What one thread of a process was seen doing from outside.
struct Wait {
  std::int32_t tid = 0;
  std::string name;
  WaitKind kind = WaitKind::kUnknown;
  std::uint64_t object = 0;     // kFutex: address of the word; of a rwlock: its own
  std::int64_t target_pid = 0;  // kWaitChild: >0 that child, -1 any child
  bool has_timeout = false;
  bool is_shared = false;             // kFutex: the word is in a shared mapping, or the operation is not private
  char state = '?';                   // /proc/PID/stat field 3
  FutexUse use = FutexUse::kUnknown;  // kFutex
  std::int32_t owner = 0;             // of a mutex, of a rwlock held for writing: its tid; of a join: who is to end
  std::uint32_t readers = 0;          // of a rwlock
  MutexType mutex_type = MutexType::kUnknown;
  bool owner_is_gone = false;     // no task has that tid any more
  bool is_inherited = false;      // of a mutex: `owner`, the first thread of a forked process, has it since before its fork
  std::int32_t fd = -1;           // of a descriptor's wait
  std::string path;               // "pipe:[17]", "/run/a.lock"; of a shared word: the file that is mapped there
  std::string object_name;        // of a word that is a global: "queue_mutex"
  std::string object_module;      // path of the module that holds the word
  std::uint64_t module_bias = 0;  // where that was loaded
  bool wakers_known = false;      // `wakers` are all that could end this wait, signal handlers left aside
  std::vector<Waker> wakers;
  bool is_stuck = false;  // proved: none of them ever will
  bool may_be_cancelled = false;  // asynchronously: a thread of its process that goes on may do that at any time
  Stack stack;            // where the thread is, if it could be looked at
};

}  // namespace forksight::model
