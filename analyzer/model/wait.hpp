// What a thread was seen to wait for from outside, and who could end that.
#pragma once

#include <cstdint>
#include <optional>
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
  kVfork,      // for its child to exec or to end
  kTraced,     // stopped for its tracer
  kFifoOpen,   // in open(), until somebody opens the other end
  kSemaphore,  // of System V: semop()
  kSignal,     // pause(), sigsuspend(), sigwait()
};

// What a futex word is part of, as far as the bytes around it tell.
enum class FutexUse {
  kUnknown,
  kMutex,
  kRwlockRead,
  kRwlockWrite,
  kJoin,
  kGil,  // the global lock of a Python interpreter
};

// Who could end a wait.
struct Waker {
  std::int32_t pid = 0;
  std::int32_t tid = 0;  // 0: any thread of that process
  std::int32_t fd = -1;  // the descriptor by which it could
  std::string via;       // "mutex", "join", "GIL", "wait4", "pipe", "socket", "flock" ...
};

// A process may be able to end a wait of a thread that does not wait for that process. These are two ways to do so. As
// long as the process can run, the wait is not proven to last. It is no cause of the wait, and no member of a ring.
inline constexpr const char* kViaShutdown = "shutdown";      // it has the waiter's own end of the socket
inline constexpr const char* kViaReceiving = "SCM_RIGHTS";   // it could take a descriptor out of a socket's queue

inline bool is_waited_for(const std::string& via) { return via != kViaShutdown && via != kViaReceiving; }

enum class EnderKind {
  kProcess,   // one that has the other end, the lock or the memory, or that is awaited itself
  kTimer,     // time
  kSignal,    // a signal
  kAnybody,   // somebody who cannot be named beforehand: who opens the FIFO, who types at the terminal
  kContinue,  // the thread does not sleep but was stopped or frozen: who lets it go on
};

// Who or what could end a wait, told to people, and to rules that point at a suspect. It names more than `wakers`,
// which are what a proof rests on: time, signals, strangers. No proof rests on it.
struct Ender {
  EnderKind kind = EnderKind::kProcess;
  std::int32_t pid = 0;
  std::int32_t tid = 0;          // 0: any thread of that process
  std::int32_t fd = -1;          // the descriptor by which it could
  std::string via;               // kProcess: as in Waker
  std::string command;           // kProcess: its command line, cut; "" if it cannot be read
  char state = '?';              // kProcess: of that process or thread, as in /proc/PID/stat
  bool is_frozen = false;        // kProcess: by its control group
  bool may_have_written = true;  // kProcess: false: it has written nothing to anything since it began
  std::string what;  // the others: "a handler of SIGTERM", "whoever opens it for writing"; kContinue: the command
  std::optional<std::uint64_t> in_ms;  // kTimer: the time that is left, where that is known
};

// The semaphore of a System V set that a thread waits for.
struct SemaphoreWait {
  std::int32_t set = 0;
  std::uint32_t number = 0;
  std::int32_t value = 0;      // it has this value now
  std::int32_t operation = 0;  // what the thread asks for: less than 0 takes so many units, 0 waits for the value 0
  std::int32_t last_pid = 0;   // who changed it last; 0: not known
  bool last_is_gone = false;   // that process does not exist any more
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
  std::int32_t owner = 0;             // of a mutex, a GIL, a rwlock held for writing: its tid; of a join: who is to end
  std::uint32_t readers = 0;          // of a rwlock
  MutexType mutex_type = MutexType::kUnknown;
  bool owner_is_gone = false;  // no task has that tid any more
  bool is_inherited = false;  // of a mutex: `owner`, the first thread of a forked process, has it since before its fork
  std::int32_t fd = -1;       // of a descriptor's wait
  std::string path;           // "pipe:[17]", "/run/a.lock"; of a shared word: the file that is mapped there
  std::string object_name;    // of a word that is a global: "queue_mutex"
  std::string object_module;  // path of the module that holds the word
  std::uint64_t module_bias = 0;  // where that was loaded
  bool wakers_known = false;      // `wakers` are all that could end this wait, signal handlers left aside
  std::vector<Waker> wakers;
  bool is_stuck = false;                // proved: none of them ever will
  bool may_be_cancelled = false;        // a thread of its process that goes on may cancel it in this wait
  std::string call;                     // in words: "read", "a sleep"; "" if it was not asked
  std::string target;                   // what it waits for there, in words; "" if no more is known than the call
  std::optional<std::uint64_t> for_ms;  // since the thread ran last
  std::vector<Ender> enders;            // who could end it; empty: nobody that could be seen, or it was not asked
  bool are_enders_known = false;        // `enders` were looked for
  std::uint64_t woken_by = 0;  // signals that end it: with a handler and not blocked, or waited for; bit 0 is signal 1
  bool is_unlinked = false;    // kFifoOpen: the name is gone, so nobody can open it any more
  std::optional<SemaphoreWait> semaphore;  // kSemaphore
  Stack stack;                             // where the thread is, if it could be looked at
};

}  // namespace forksight::model
