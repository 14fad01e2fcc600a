// The model: what is known about a set of processes. Traces, live processes and cores fill the same model. The model is
// plain data with indices instead of pointers. collect/ and inspect/ build the model. diagnose/ reads the model, and
// adds nothing to it except sentences in Model::limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/copied_state.hpp"
#include "model/cuda_ipc.hpp"
#include "model/foresight.hpp"
#include "model/ids.hpp"
#include "model/output.hpp"
#include "model/owners.hpp"
#include "model/shares.hpp"
#include "model/stack.hpp"
#include "model/wait.hpp"

namespace forksight::model {

struct Thread {
  ProcessId process = 0;
  std::int32_t tid = 0;
  std::string name;
  std::int32_t creator_tid = 0;  // 0: unknown
  std::string start_routine;     // symbol of the function given to pthread_create, "" if unknown
  std::string start_library;     // path of the module that contains this function
  // the outermost function of the program itself in which the thread is now; "" if unknown
  std::string body;
  Stack created_at;
  Owner owner = Owner::kUnknown;
  bool is_main = false;
  bool has_ended = false;     // the thread ended before a fork, while it held locks
  std::uint64_t pointer = 0;  // pthread_self(), 0: unknown
};

// What a Python interpreter reports about one thread.
struct PythonThread {
  std::uint64_t pointer = 0;  // pthread_self(); the native Thread has the same value in `pointer`
  Stack stack;
};
using PythonThreads = std::vector<PythonThread>;  // the stacks of all threads at one moment
using PythonId = std::size_t;

// For a condition variable or barrier, the threads that wait there count as its holders. kPython: a PyMutex of CPython
// 3.13 or later, or a lock that is built on a PyMutex.
enum class LockKind {
  kMutex,
  kRwlockRead,
  kRwlockWrite,
  kSpinlock,
  kSemaphore,
  kBarrier,
  kCondition,
  kGuard,
  kCustom,
  kPython
};

struct Lock {
  std::uint64_t address = 0;
  LockKind kind = LockKind::kMutex;
  MutexType type = MutexType::kUnknown;  // mutexes only
  bool robust = false;
  bool priority_inherit = false;
  bool process_shared = false;
  std::string name;    // "cache_mu", "queue+0x40"; "" if the lock is not in a module
  std::string module;  // path of the module that contains the lock; "" for heap and stack
  std::string place;   // for a lock without a name: "heap", "/dev/shm/queue+0x40"; "" if nothing is known
  std::string label;   // kCustom: the kind of lock, as its annotations name it; "" if no annotation names the kind
};

// One lock that was held at a fork.
struct Held {
  LockId lock = 0;
  ThreadId holder = 0;
  Stack acquired_at;  // may be empty, if the fork came after the thread took the lock and before the shim recorded that
  Stack holder_now;   // where the holder is now; empty: perhaps the holder no longer holds the lock
  bool by_forking_thread = false;
  // True: it is not known whether the fork lost the holder. Perhaps a thread of the child holds the lock, or a thread
  // that has ended left it locked.
  bool may_be_own = false;
  // The lock does not record its holder, and the parent shows no taken lock at the same address now. So it is possible
  // that nobody held the lock at the fork, and that a thread of the child has taken it since. Or the child made the
  // lock after the fork.
  // Or the lock is a mutex or rwlock, and its owner's id means two threads in two pid namespaces.
  bool may_have_been_free = false;
  // barriers and condition variables: the number of threads that wait there; `holder` is one of them
  std::uint32_t waiters = 0;
};

enum class AwaitedKind { kCondition, kBarrier, kThread, kSemaphore, kFutex, kSignals };

// What a lost thread waited for when its process was about to fork.
struct LostWait {
  ThreadId thread = 0;
  AwaitedKind kind = AwaitedKind::kCondition;
  // kThread: the tid (0: unknown). kSignals: the set of signals (bit 0 is signal 1). Other kinds: an address.
  std::uint64_t object = 0;
  std::string name;  // "queue_cv"; "" if the object is not in a module
};

// A libc function that takes locks which fork() does not reset in the child.
struct LibcCall {
  std::string function;
  std::uint64_t locks = 0;  // the set of trace::LibcLock that the function may take
};

// A thread was inside of the function of a LibcCall at a fork.
struct CallInFlight {
  LibcCall call;
  ThreadId thread = 0;
  Stack called_at;
  bool by_forking_thread = false;
  bool ended = false;  // the fork waited until the call ended, so the call did the child no harm
};

// A standard stream that another thread had locked at a fork.
struct LockedStream {
  std::uint64_t lock = 0;  // address of the futex word
  int number = 1;
  ThreadId thread = 0;
};

// How a fork waited for libc calls of other threads (--cure=quiesce-libc).
struct Quiesced {
  std::uint64_t waited_ns = 0;
  std::uint32_t waited_for = 0;  // the number of threads
  std::uint32_t left = 0;        // the number of calls that had not returned when the time was up
};

enum class RuntimeKind { kUnknown, kLibgomp, kLibomp, kLibiomp5 };
enum class CureMethod { kClamp, kQuiesce, kRebuild };
enum class CureResult { kApplied, kRefusedInRegion, kRefusedByRuntime, kRefusedNoImage };

// A thread pool of a runtime, as the forking thread saw it at one fork.
struct Pool {
  RuntimeKind kind = RuntimeKind::kUnknown;
  std::string library;     // path
  bool in_region = false;  // the fork happened inside of a parallel region, active or serialised
  bool rebuilds_itself = false;
  std::int32_t max_threads = -1;
  std::uint32_t workers_before = 0;  // workers of the forking thread's pool when the fork began
  // the number of these workers that still existed after the prepare handlers: the child does not have them
  std::uint32_t workers_lost = 0;
  std::uint64_t workers_total = 0;  // workers of the pools of all threads
  std::vector<ThreadId> workers;    // the lost workers that are known
  Stack made_at;                    // where a worker of the pool was created
  std::optional<CureMethod> cure;
  CureResult cure_result = CureResult::kApplied;
};

// How a program obtained the CUDA driver's functions.
enum class CudaWay { kUnknown, kSymbol, kDlsym, kGetProcAddress };

// The CUDA driver of a process, as it was at one fork.
struct Cuda {
  std::string library;  // path
  // initialised by this process; if `was_lost`, initialised by an ancestor of this process
  bool is_initialised = false;
  // the driver was initialised before an earlier fork, so the forking process could not use it either
  bool was_lost = false;
  bool asked = false;                // true: `devices` and `active_contexts` are the driver's own answers at this fork
  int version = 0;                   // 12020 is 12.2, 0: unknown
  int devices = -1;                  // -1: unknown
  std::vector<int> active_contexts;  // devices whose primary context is active
  CudaWay init_way = CudaWay::kUnknown;
  std::int32_t init_tid = 0;  // 0: the first cuInit was not seen
  std::string init_thread;
  Stack init_stack;  // where that cuInit was called
};

// MPI or UCX that was initialised when its process forked.
enum class MpiKind { kMpi, kUcx };
struct Mpi {
  MpiKind kind = MpiKind::kMpi;
  std::string library;    // path, "" if it is not known
  bool was_lost = false;  // initialised by an ancestor, before an earlier fork
};

// What happened to the threads of one owner at one fork.
enum class PoolState {
  kLost,      // the child does not have the threads, but their library relies on these threads there
  kHandled,   // the prepare handler of their library ended the threads, or the child never needs them
  kRebuilds,  // the child does not have the threads, but their library makes new ones there
};
struct ThreadPool {
  Owner owner = Owner::kUnknown;
  // path; for std::thread and unknown owners: path of the library that made the threads
  std::string library;
  std::vector<ThreadId> threads;  // the threads that existed after all prepare handlers, without the forking thread
  std::uint32_t before = 0;       // the number of threads when fork() was entered
  PoolState state = PoolState::kLost;
};

enum class HandlerPhase { kPrepare, kParent, kChild };

// What one call of pthread_atfork() registered.
struct AtforkHandlers {
  std::string library;       // path of the library of the first handler
  std::string functions[3];  // by phase; "" if the phase has no function, or if the function has no symbol
  bool has[3] = {};
};

struct HandlerTime {
  HandlerId handlers = 0;
  std::optional<std::uint64_t> ns[3];  // by phase
};

enum class HandlerWaitKind { kLock, kJoin, kCondition };

// What an atfork handler was seen to wait for.
struct HandlerWait {
  HandlerWaitKind kind = HandlerWaitKind::kLock;
  std::uint64_t object = 0;       // address
  std::string object_name;        // only if the lock or condition variable is a global variable
  std::string object_module;      // path of the module that contains the object
  std::optional<ThreadId> owner;  // the thread that holds the lock, or the thread for whose end the handler waits
  Stack owner_stack;              // where the owner took the lock
  Stack stack;
  bool timed = false;
};

// A lock that an earlier prepare handler of the same fork took, and that the forking thread holds while a later handler
// waits.
struct HandlerHold {
  std::uint64_t object = 0;   // address
  std::string object_name;    // only if the lock is a global variable
  std::string object_module;  // path of the module that contains the object
  Stack taken_at;             // only the innermost frame is certain; other frames may be missing
};

// A handler that had been called and had not returned when the trace was read.
struct HandlerRun {
  ProcessId process = 0;
  std::int32_t tid = 0;
  std::optional<ForkId> fork;      // none: a prepare handler runs, and no child exists yet
  std::optional<ThreadId> thread;  // the forking thread; none if the handler runs in a child
  HandlerPhase phase = HandlerPhase::kPrepare;
  HandlerId handlers = 0;
  std::uint32_t place = 0;     // 1: the handler is the first one that is called in this phase
  std::uint32_t of = 0;        // the number of handlers that have a function for this phase
  std::uint64_t since_ns = 0;  // CLOCK_MONOTONIC
  Stack fork_stack;
  std::vector<HandlerWait> waits;  // waits that have not ended, oldest first
  std::vector<HandlerHold> holds;  // kPrepare: the locks that the thread held when the innermost of `waits` began
};

struct Fork {
  ProcessId process = 0;  // the parent
  std::optional<ProcessId> child;
  std::uint64_t ordinal = 0;
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  ThreadId forking_thread = 0;
  Stack stack;
  std::vector<ThreadId> lost_threads;  // all threads of the parent except the forking one
  std::uint32_t unknown_threads = 0;   // lost threads about which nothing is known
  std::vector<LostWait> lost_waits;
  // threads that lived when fork() was entered, and ended before the last prepare handler returned
  std::vector<ThreadId> ended_in_prepare;
  std::vector<ThreadPool> thread_pools;  // the threads of lost_threads and ended_in_prepare, by owner
  std::vector<HandlerTime> handlers;     // in order of registration
  std::vector<Held> held;
  std::vector<CallInFlight> calls;
  std::vector<LockedStream> streams;  // only for forks that bypassed the handlers
  std::optional<Quiesced> quiesced;
  std::vector<PoolId> pools;
  std::optional<PythonId> python;  // the stacks of Python's threads at the fork
  std::optional<Cuda> cuda;        // none: no driver is loaded
  std::vector<Mpi> mpi;            // at most one of each kind
  std::vector<ArmedTimer> timers;
  std::uint64_t prepare_ns = 0;
  std::uint64_t total_ns = 0;
  int error = 0;          // errno of a failed fork
  bool bypassed = false;  // made by _Fork(), clone() or syscall(): no atfork handler ran
  bool by_clone = false;
  bool by_syscall = false;  // made by syscall(), with the number of fork or clone
  // No trace records the fork. forksight inferred the fork from the present state of processes. The threads of the fork
  // are the threads that the parent has now.
  bool is_inferred = false;
  // The fork may have lost more threads than lost_threads and unknown_threads, because some may have ended since the
  // fork.
  bool may_have_lost_more = false;
  // A core names `process` as the parent. But if the real parent had ended before, `process` only adopted the child.
  bool is_parent_supposed = false;
};

// A kFutexWait is not a fault by itself: it shows only what a child waits for. A wait becomes a kFutexWait only if
// nothing can end the wait, or if only a signal handler can.
enum class TouchKind {
  kLock,
  kUnlockRefused,
  kParallel,
  kCondition,
  kBarrier,
  kFutexWait,
  kLibcCall,
  kExit,
  kCudaCall,
  kMpiCall,
  kTimerWait,
};
enum class SyncOperation { kNone, kDestroy, kSignal, kBroadcast, kWait };
enum class TouchAction { kNone, kAborted, kRecovered, kGiven };

// A lock does not record its holder, but the stack of a thread contains the lock's address. The thread may hold the
// lock, or may only know the address.
struct LockReference {
  ThreadId thread = 0;
  bool is_own = false;  // true: `thread` is a thread of the waiting process; false: `thread` is a lost thread
  Stack stack;          // from the function that refers to the lock outwards
};

// An operation of a forked process on something that the fork broke.
struct Touch {
  ForkId fork = 0;
  ProcessId process = 0;
  std::int32_t tid = 0;
  std::uint64_t time_ns = 0;
  TouchKind kind = TouchKind::kLock;
  TouchAction action = TouchAction::kNone;
  std::optional<std::size_t> held;       // kLock, kUnlockRefused, kCondition, kBarrier: index into Fork::held
  std::optional<PoolId> pool;            // kParallel
  std::optional<std::size_t> in_flight;  // kLibcCall: index into Fork::calls
  LibcCall call;                         // kLibcCall: the function that the child called
  Stack stack;
  std::uint32_t team = 0;      // kParallel: the number of threads that the region would get
  std::uint32_t clause = 0;    // kParallel: its num_threads clause; 0: none
  bool timed = false;          // the call has a deadline
  bool is_team_guess = false;  // kParallel: the runtime may have chosen fewer threads (OMP_DYNAMIC)
  // no record of the fork names the holder, but the lock's memory names a lost thread as the owner
  bool by_owner = false;
  SyncOperation operation = SyncOperation::kNone;  // kCondition, kBarrier
  bool is_stolen = false;                          // kCondition: a lost waiter got the signal
  bool cured = false;                              // kParallel, kLibcCall: because of a cure, the operation did no harm
  std::uint64_t object = 0;                        // kFutexWait: address of the word; kTimerWait: the set of signals
  std::string object_name;                         // "ready", "queue+0x40"; "" if the object is not in a module
  std::string object_module;                       // path of the module that contains the object; "" for heap and stack
  std::uint32_t value = 0;                         // kFutexWait: value of the word
  bool has_handlers = false;                       // kFutexWait: a signal handler may end the wait
  // These three are for a kFutexWait on a lock that does not record its holder: the address of the lock, the first few
  // threads that refer to the lock, and the number of all threads that refer to the lock.
  std::uint64_t awaited_lock = 0;
  std::vector<LockReference> lock_references;
  std::uint32_t lock_referrers = 0;
  bool returned = false;
  int result = 0;        // valid if returned
  std::string function;  // kCudaCall, kMpiCall: the called function
};

enum class Liveness {
  kUnknown,
  kAwake,  // the process may continue
  kDead,   // proven: no task can wake any thread of the process
  // Only a signal handler can wake the process: a handler of the process itself, or of a process for which it waits.
  kDeadButForSignal,
  kSpinning,  // the process used CPU time all the time, and did not return from its touch
  // The process has been in an atfork handler, or in a wait for a timer, for long. It is not proven that the handler or
  // the wait never ends.
  kStalled,
  kVictim,  // the process waits only for dead processes
  kEnded,
};

// A child that has ended, but whose parent has not waited for its end yet.
struct Zombie {
  std::int32_t pid = 0;
  std::string name;
  bool is_fork = false;  // the child did not call exec between its fork and its end
};

struct Process {
  std::int32_t pid = 0;
  std::int32_t ppid = 0;
  std::uint64_t start_ticks = 0;  // identifies the process together with `pid`; 0: unknown
  std::string exe;
  std::vector<std::string> cmdline;
  std::string host;
  int rank = -1;
  int world_size = -1;
  Liveness liveness = Liveness::kUnknown;
  std::uint64_t stuck_for_ms = 0;  // with kDead.., kSpinning, kVictim: how long this state has been seen
  std::vector<Wait> waits;
  std::vector<Zombie> zombies;         // among the children of the process
  bool has_reaped = false;             // the process has waited for the end of a child
  std::optional<ProcessId> waits_for;  // kVictim: the process for which the victim waits
  std::string waits_via;               // kVictim: "wait4", "pipe" ...
  std::optional<int> exit_status;      // as wait(2) returns the status
  bool killed_by_run = false;          // `run` killed the process because it hung
  bool is_unreadable = false;          // `run` could not examine the process, because the kernel refused
  std::uint64_t seen_ended_ns = 0;     // when the process was seen to have ended (CLOCK_MONOTONIC); 0: not seen
  // pending signals that all threads of the process block, and for which only lost threads waited; bit 0 is signal 1
  std::uint64_t unheard_signals = 0;
  // kDeadButForSignal: what may still end the wait of the process, for example "a handler of SIGTERM". Empty: the wait
  // may be ended by a handler that a core does not show, or by Python's handler of Ctrl-C.
  std::vector<std::string> ways_out;
  // A signal could end the wait of this process, or of a process for which this process waits. That signal may come
  // although no other process sends it: a timer may expire, a child may end, or a thread of the same process may send
  // it.
  bool may_be_timed_out = false;
  std::uint64_t unheard_for_ms = 0;  // how long the first of `unheard_signals` was seen to be pending
  // The Python stacks of the process. Either forksight read them from the memory of the process, or the shim wrote them
  // when `run` asked.
  std::optional<PythonId> python;
  int python_signal = 0;         // the signal by which the process can be asked for its Python stacks; 0: none
  std::uint64_t shim_start = 0;  // where the shim is mapped according to its traces; 0: not known
  bool has_execed = false;       // the process called exec after its fork, and so lost what it had inherited
  bool is_core = false;          // seen in a core file: the process may no longer exist
  // is_core: no file that the process maps imports a function that sets a signal handler, such as sigaction(). False:
  // the process may have handlers, or it is not known whether it has.
  bool sets_no_handlers = false;
  bool has_gaps = false;  // the trace may lack records: there was no space, or the file is cut
  // The memory of the process shows that it never had a second thread: no thread has ended, and no fork lost one.
  bool never_had_other_threads = false;
  // False: the user asked `why` about other processes. This one is an ancestor of them, shares something with them, or
  // is a parent that could not be examined. It was examined because it may explain their waits.
  bool is_asked_about = true;
  // This entry stands for all ancestors of a forked process. None of these ancestors could be examined.
  bool is_some_ancestor = false;
};

// A child of vfork() called exit(). Such a child shares its parent's memory.
struct VforkExit {
  ProcessId process = 0;  // the parent
  std::int32_t child = 0;
  std::int32_t tid = 0;  // the parent's thread that called vfork()
  Stack stack;           // of the child
};

struct Model {
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Lock> locks;
  std::vector<Pool> pools;
  std::vector<Fork> forks;
  std::vector<PythonThreads> python;
  std::vector<AtforkHandlers> handlers;
  std::vector<HandlerRun> handler_runs;
  std::vector<Touch> touches;
  std::vector<VforkExit> vfork_exits;
  std::vector<UnflushedOutput> unflushed;
  std::vector<Share> shares;
  std::vector<Draw> draws;
  std::vector<CudaIpcCall> cuda_ipc;
  std::vector<FileLockUse> file_lock_uses;  // in order of time
  std::vector<ThreadLife> lives;
  std::vector<LockOrder> lock_orders;
  std::vector<RacyTouch> racy_touches;
  std::vector<std::string> command;  // of the run, if there was one
  std::vector<std::string> limits;   // what could not be seen, one sentence each
};

}  // namespace forksight::model
