// What a thread waits for, as seen from outside of its process (through /proc or by ptrace), and who could end the
// wait.
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
  kFileLock,      // flock, or fcntl with F_SETLKW
  kEventfd,       // until the count of the eventfd is no longer zero
  kVfork,         // in vfork(), until the child calls exec or ends
  kTraced,        // stopped by its tracer
  kFifoOpen,      // in open(), until another process opens the other end
  kSemaphore,     // semop() on a semaphore of a System V set
  kSignal,        // pause(), sigsuspend(), sigwait()
  kEventfdWrite,  // until the count of the eventfd has room for the number that is written
};

// What a futex word is part of, judged by the bytes around it.
enum class FutexUse {
  kUnknown,
  kMutex,
  kRwlockRead,
  kRwlockWrite,
  kJoin,
  kGil,  // the global lock of a Python interpreter
};

// A process or thread that could end a wait.
struct Waker {
  std::int32_t pid = 0;
  std::int32_t tid = 0;  // 0: any thread of that process
  std::int32_t fd = -1;  // the descriptor by which the waker could end the wait
  std::string via;       // "mutex", "join", "GIL", "wait4", "pipe", "socket", "flock" ...
};

// Four values of Waker::via. A waker with one of them could end the wait, although the thread does not wait for it.
// While such a waker can run, the wait is not proven to last. But such a waker is not the cause of the wait. It is also
// no member of a ring of processes that wait for each other.
inline constexpr const char* kViaShutdown = "shutdown";  // the waker has the waiting thread's own end of the socket
// the waker could take a descriptor out of the queue of a socket
inline constexpr const char* kViaReceiving = "SCM_RIGHTS";
// the waker has the thread's epoll instance, and could let it watch another file
inline constexpr const char* kViaEpoll = "epoll";
// The waker is a descendant of a child of the waiting process. If the processes between them end, the waiting process
// may become its parent (PR_SET_CHILD_SUBREAPER, or the first process of a pid namespace).
inline constexpr const char* kViaAdoption = "adoption";

// Waker::via of the process that holds a lock of Python's multiprocessing. The counts in the Python objects of the
// processes show who holds the lock.
inline constexpr const char* kViaSemaphoreLock = "semaphore lock";

inline bool is_waited_for(const std::string& via) {
  return via != kViaShutdown && via != kViaReceiving && via != kViaEpoll && via != kViaAdoption;
}

enum class EnderKind {
  // A process that has the other end of the pipe or socket, or that has the lock or the memory. Or a process for whose
  // end the thread waits.
  kProcess,
  kTimer,     // time
  kSignal,    // a signal
  kAnybody,   // anybody, known or not, who opens the FIFO, types at the terminal ...
  kContinue,  // whoever continues the thread, which is not asleep, but stopped or frozen
};

// Who or what could end a wait. Reports list the enders, and rules use them to name a suspect. In contrast to
// `Wait::wakers`, the enders include time, signals, and processes outside of the run. Proofs use only `Wait::wakers`.
struct Ender {
  EnderKind kind = EnderKind::kProcess;
  std::int32_t pid = 0;
  std::int32_t tid = 0;    // 0: any thread of that process
  std::int32_t fd = -1;    // the descriptor by which the ender could end the wait
  std::string via;         // kProcess: as in Waker
  std::string command;     // kProcess: its command line, cut; "" if it cannot be read
  char state = '?';        // kProcess: state of that process or thread, as in /proc/PID/stat
  bool is_frozen = false;  // kProcess: its control group is frozen
  // False for a process that could end the wait by a descriptor, but has made no write call since the process began.
  bool may_have_written = true;
  // All kinds except kProcess: words such as "a handler of SIGTERM" or "whoever opens it for writing". kContinue: the
  // command that continues the thread.
  std::string what;
  std::optional<std::uint64_t> in_ms;  // kTimer: the remaining time, if it is known
};

// The semaphore of a System V set for which a thread waits.
struct SemaphoreWait {
  std::int32_t set = 0;
  std::uint32_t number = 0;
  std::int32_t value = 0;  // the present value of the semaphore
  // what the thread asks for: a negative number takes that many units, 0 waits for the value 0
  std::int32_t operation = 0;
  std::int32_t last_pid = 0;  // the process that changed the semaphore last; 0: not known
  bool last_is_gone = false;  // the process `last_pid` no longer exists
};

// How processes use a semaphore of Python's multiprocessing, according to the Python objects in their memory.
enum class SemaphoreUse {
  kUnknown,
  // The semaphore is a lock, and one of the processes holds it. The waker with kViaSemaphoreLock is that process.
  kLockHeld,
  kLockWithoutHolder,  // the semaphore is a lock that is taken, but none of the processes holds it
  kCounts,             // the semaphore counts units or events, so no process holds it
};

// What one thread of a process was seen to do, from outside.
struct Wait {
  std::int32_t tid = 0;
  std::string name;
  WaitKind kind = WaitKind::kUnknown;
  std::uint64_t object = 0;     // kFutex: address of the futex word; for a rwlock, address of the lock
  std::int64_t target_pid = 0;  // kWaitChild: >0: the pid of that child, -1: any child
  bool has_timeout = false;
  bool is_shared = false;             // kFutex: the word is in a shared mapping, or the operation is not private
  char state = '?';                   // /proc/PID/stat field 3
  FutexUse use = FutexUse::kUnknown;  // kFutex
  // mutex, GIL, or rwlock that is held for writing: the tid of the owner; join: the tid of the thread to be joined
  std::int32_t owner = 0;
  std::uint32_t readers = 0;  // for a rwlock: the number of readers that hold the lock
  MutexType mutex_type = MutexType::kUnknown;
  bool owner_is_gone = false;  // no task has the tid `owner` any more
  // mutex: `owner` is the first thread of a forked process. It has held the mutex since before the fork.
  bool is_inherited = false;
  std::int32_t fd = -1;  // the descriptor for which the thread waits; -1: none
  std::string path;      // "pipe:[17]", "/run/a.lock"; for a futex word in shared memory, the file that is mapped there
  std::string object_name;        // for a futex word that is a global variable: "queue_mutex"
  std::string object_module;      // path of the module that contains the futex word
  std::uint64_t module_bias = 0;  // load address of that module
  bool wakers_known = false;      // `wakers` has all that could end this wait, except signal handlers
  std::vector<Waker> wakers;
  bool is_stuck = false;  // proven: none of `wakers` will ever end this wait
  // A running thread of the process may cancel this thread at any instruction.
  bool may_be_cancelled = false;
  std::string call;  // the call, in words: "read", "a sleep"; "" if it was not looked up
  // the object for which the call waits, in words; "" if only the call is known
  std::string target;
  std::optional<std::uint64_t> for_ms;  // the time since the thread ran last
  // who could end this wait; empty: nobody that forksight can see, or this was not looked up
  std::vector<Ender> enders;
  bool are_enders_known = false;  // `enders` were looked up
  // the signals that end this wait; bit 0 is signal 1. Either the thread waits for these signals, or these signals have
  // a handler and the thread does not block them.
  std::uint64_t woken_by = 0;
  bool is_unlinked = false;                // kFifoOpen: the name was removed, so nobody can open the FIFO any more
  std::optional<SemaphoreWait> semaphore;  // kSemaphore
  // kFutex: for a POSIX semaphore in shared memory
  SemaphoreUse semaphore_use = SemaphoreUse::kUnknown;
  Stack stack;  // where the thread is; empty if that could not be read
};

}  // namespace forksight::model
