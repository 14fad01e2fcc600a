// The trace file, version 1: what the shim writes and the analyzer reads.
//
// There is one file for each process image. The first process that has something to record creates it. Every child that
// is forked from this process inherits the file as a shared mapping, until exec. So parent and children append to the
// same file. The bytes of a record are in the page cache as soon as they are stored, so they survive SIGKILL of all
// writers.
//
//   [ TraceHeader, 4096 bytes ][ record ][ record ] ... [ zeros up to `allocated` ]
//
// A record consists of a RecordHeader, a fixed payload, and for some types a variable tail. Records follow each other
// without gaps. The size of each record is a multiple of kRecordAlign bytes. Writers claim space without a lock, by a
// compare-exchange of the first word from 0 to {size, type, kWriting}. From then on a reader can skip the record,
// because its size is known, even if the writer dies. One release store of {size, type, kCommitted} publishes the
// record. If a record stays in kWriting, its writer died or has not finished.
//
// References between records are file offsets of the RecordHeader (0: none). A reference points to an earlier record,
// except in fields that change in place. Integers have the byte order of the machine that writes. The header contains
// that byte order. Only x86-64 Linux writes version 1.
//
// records.def lists the records. docs/trace.md describes the file for people who read it. `forksight trace dump` prints
// a file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "forksight/trace/file_locks.hpp"
#include "forksight/trace/header.hpp"
#include "forksight/trace/libc_calls.hpp"
#include "forksight/trace/python.hpp"
#include "forksight/trace/shares.hpp"
#include "forksight/trace/timers.hpp"

namespace forksight::trace {

// --- records ----------------------------------------------------------------------------------------------------

enum class RecordState : std::uint8_t { kFree = 0, kWriting = 1, kCommitted = 2 };

enum class RecordType : std::uint16_t {
#define FORKSIGHT_RECORD(id, number, name, type, words) id = number,
#include "forksight/trace/records.def"
};

// The first word of a record, from its lowest bit on: size in bytes including the header (32 bits), type (16), state
// (8), zero (8).
constexpr std::uint64_t pack_word(std::uint32_t size, RecordType type, RecordState state) {
  return std::uint64_t{size} | std::uint64_t{static_cast<std::uint16_t>(type)} << 32U |
         std::uint64_t{static_cast<std::uint8_t>(state)} << 48U;
}
constexpr std::uint32_t word_size(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
constexpr RecordType word_type(std::uint64_t word) {
  return static_cast<RecordType>(static_cast<std::uint16_t>(word >> 32U));
}
constexpr RecordState word_state(std::uint64_t word) {
  return static_cast<RecordState>(static_cast<std::uint8_t>(word >> 48U));
}

struct RecordHeader {
  std::atomic<std::uint64_t> word;
  std::int32_t pid;  // the writer
  std::int32_t tid;
  std::uint64_t time_ns;  // CLOCK_MONOTONIC
  std::uint64_t reserved;
};
static_assert(sizeof(RecordHeader) == 32);
static_assert(offsetof(RecordHeader, pid) == 8);
static_assert(offsetof(RecordHeader, time_ns) == 16);

// A loaded ELF object. The record is valid for all later records of this file, until a kModuleGone with the same
// `bias`. Tail: the path, `path_bytes` bytes. For the main program it is the real path of the executable, for the vdso
// "[vdso]".
struct ModuleRecord {
  std::uint64_t bias;   // l_addr: run-time address minus link-time address
  std::uint64_t start;  // lowest mapped address
  std::uint64_t end;    // one past the highest mapped address
  std::uint32_t build_id_bytes;
  std::uint32_t path_bytes;
  std::uint8_t build_id[32];
};
static_assert(sizeof(ModuleRecord) == 64);

struct ModuleGoneRecord {
  std::uint64_t bias;
};
static_assert(sizeof(ModuleGoneRecord) == 8);

enum StackFlag : std::uint32_t {
  kStackCut = 1U << 0U,     // bytes are missing at the outer end, because the stack has more bytes than were copied
  kStackFrozen = 1U << 1U,  // the stack was copied some time after the call that the record is about. Meanwhile the
                            // thread may have overwritten inner frames. An example is the stack of a lost thread.
};

// A stack to be unwound later. The innermost frame is at `pc`, which is a return address: the call is just before it.
// The registers of that frame after the return are rsp = `sp` and rbp = `fp`. Tail: `bytes` of memory from `sp` upward.
struct StackRecord {
  std::uint64_t pc;
  std::uint64_t sp;
  std::uint64_t fp;
  std::uint32_t bytes;
  std::uint32_t flags;  // StackFlag
};
static_assert(sizeof(StackRecord) == 32);

// The first record of a file. It contains references to kStack records that were written recently. Only writers use it,
// so that they do not write the same stack again.
inline constexpr std::uint32_t kRecentStacks = 256;
struct RecentRecord {
  std::atomic<std::uint64_t> stacks[kRecentStacks];
};
static_assert(sizeof(RecentRecord) == 2048);

enum ThreadFlag : std::uint32_t {
  kThreadMain = 1U << 0U,     // the initial thread of the process image, or the one thread of a forked child
  kThreadForeign = 1U << 1U,  // not created through pthread_create: creator and start routine are not known
  kThreadEnded = 1U << 2U,    // the thread ended before the fork, while it still held locks
};

// A thread that the shim knows. The record is written when another record first refers to it.
struct ThreadRecord {
  std::int32_t tid;
  std::int32_t creator_tid;      // 0: unknown
  std::uint64_t start_routine;   // address; 0: unknown
  std::uint64_t creation_stack;  // ref to kStack, 0: none; its `pc` lies in the caller of pthread_create
  std::uint64_t created_ns;      // CLOCK_MONOTONIC
  std::uint32_t flags;           // ThreadFlag
  std::uint32_t reserved;
  char name[16];                 // comm, NUL-terminated
  std::uint64_t thread_pointer;  // pthread_self(); 0: unknown
};
static_assert(sizeof(ThreadRecord) == 64);

enum class RuntimeKind : std::uint32_t {
  kUnknown = 0,
  kLibgomp = 1,   // GNU OpenMP
  kLibomp = 2,    // LLVM OpenMP
  kLibiomp5 = 3,  // Intel OpenMP
};

enum RuntimeFlag : std::uint32_t {
  kInParallel = 1U << 0U,      // the forking thread is inside a parallel region, active or serialised
  kRebuildsItself = 1U << 1U,  // an atfork handler of the runtime rebuilds its pool in the child
};

// An OpenMP runtime as the forking thread saw it at one fork.
struct RuntimeRecord {
  std::uint64_t module_bias;  // ModuleRecord::bias of the library
  RuntimeKind kind;
  std::uint32_t flags;          // RuntimeFlag
  std::int32_t max_threads;     // omp_get_max_threads() in the forking thread, -1: not asked
  std::int32_t level;           // omp_get_level() in the forking thread, -1: not asked
  std::uint32_t pool_before;    // at entry of fork: live workers that the forking thread made through this runtime
  std::uint32_t pool_at_fork;   // the same after all prepare handlers: these workers are lost at the fork
  std::uint64_t pool_thread;    // ref to kThread of the first such worker; its creation stack shows who made the pool
  std::uint64_t workers_total;  // live workers that all threads made through this runtime
};
static_assert(sizeof(RuntimeRecord) == 48);

// The atfork handlers that were registered through __register_atfork, in the order of their registration. Tail: `count`
// HandlerEntry.
struct HandlerEntry {
  std::uint64_t prepare;  // addresses, 0: none
  std::uint64_t parent;
  std::uint64_t child;
};
struct HandlersRecord {
  std::uint32_t count;
  std::uint32_t dropped;  // the number of further handlers, for which the shim's list had no room
};
static_assert(sizeof(HandlerEntry) == 24);
static_assert(sizeof(HandlersRecord) == 8);

enum ForkFlag : std::uint32_t {
  kForkByWrapper = 1U << 0U,   // a hook saw the call of fork(), daemon() or forkpty(); else only atfork handlers saw it
  kForkBypassed = 1U << 16U,   // _Fork(), clone() or syscall(): no atfork handler runs, and libc resets no lock
  kForkByClone = 1U << 17U,    // with kForkBypassed: clone()
  kForkBySyscall = 1U << 18U,  // with kForkBypassed: syscall() with the number of fork or clone
};

enum class WaitKind : std::uint32_t {
  kNone = 0,
  kCondition = 1,
  kBarrier = 2,
  kJoin = 3,  // the object is the tid of the awaited thread; 0: unknown
  kSemaphore = 4,
  kFutex = 8,
  kSignals = 16,  // the object is the set of signals that the thread takes, as in the kernel: bit 0 is signal 1
};

struct ForkThread {
  std::uint64_t thread;       // ref to kThread
  std::uint64_t wait_object;  // address of the awaited object, or as WaitKind says; 0: none known
  WaitKind wait_kind;
  std::uint32_t held;  // number of locks that the thread holds, as far as the shim knows
};
static_assert(sizeof(ForkThread) == 24);

// A fork. The forking thread writes this record in its last prepare handler. Tail: `thread_count` ForkThread, without
// the forking thread, then `runtime_count` refs (u64) to kRuntime.
struct ForkRecord {
  std::uint64_t ordinal;         // 1 for the first fork of this trace
  std::uint64_t stack;           // ref to kStack of the caller of fork
  std::uint64_t forking_thread;  // ref to kThread
  std::uint64_t handlers;        // ref to kHandlers, 0: none registered
  std::uint32_t flags;           // ForkFlag
  std::uint32_t thread_count;
  std::uint32_t runtime_count;
  // Number of threads according to the kernel; 0: not asked. If it is more than thread_count + 1, the process has
  // threads that the shim does not know.
  std::uint32_t tasks;
  // The time from the beginning of fork to this record. In that time the prepare handlers of other libraries and of
  // the shim ran.
  std::uint64_t prepare_ns;
};
static_assert(sizeof(ForkRecord) == 56);

// The fork's result, written by the parent after its handlers ran.
struct ForkedRecord {
  std::uint64_t fork;      // ref to kFork
  std::int32_t child;      // pid, -1: fork failed
  std::int32_t error;      // errno of a failed fork
  std::uint64_t total_ns;  // time from the beginning of fork to this record
};
static_assert(sizeof(ForkedRecord) == 24);

enum class LockKind : std::uint32_t {
  kMutex = 1,
  kRwlockRead = 2,
  kRwlockWrite = 3,
  kSpinlock = 4,
  kSemaphore = 5,
  kBarrier = 6,    // its "holder" is a thread that has arrived and waits
  kCondition = 7,  // its "holder" is a thread that waits
  kGuard = 8,      // the guard variable of a static that is being initialised
  kCustom = 9,     // a lock of the program itself, according to its annotations
};

// A lock that was held at the instant of the fork. The child writes the record from its copy of the parent's memory,
// before other code runs in the child. If `thread` is the fork's forking_thread, the forking thread itself held the
// lock. Some records are written later, at the child's first operation on the object: those of a mutex that is in no
// thread's array of held locks yet, and those of a barrier or condition variable. A barrier or condition variable has a
// record for each of the first few threads that waited.
struct HeldRecord {
  std::uint64_t fork;    // ref to kFork
  std::uint64_t lock;    // address
  std::uint64_t thread;  // ref to kThread of the holder
  // ref to kStack of the acquisition (or of the wait); 0: the fork came after the acquisition, but before the shim had
  // noted it for the thread
  std::uint64_t stack;
  LockKind kind;
  std::uint32_t memory_bytes;  // valid bytes of `memory`
  std::uint8_t memory[56];     // the lock's own bytes (glibc x86-64: mutex 40, rwlock 56, sem and barrier 32, spin 4,
                               // condition variable 48; guard 8; kCustom: one byte, 1 if it is held by a reader)
};
static_assert(sizeof(HeldRecord) == 96);

enum class TouchKind : std::uint32_t {
  kLock = 1,           // an acquisition that found the lock taken; `held` names the holder
  kUnlockRefused = 2,  // an unlock that the lock refused (EPERM), because its owner is a thread of the parent
  kParallel = 3,       // a parallel region of a runtime whose pool the fork lost; `runtime` says which
  kCondition = 8,      // `operation` on a condition variable that counts waiters of the parent; `held` names one
  kBarrier = 9,        // `operation` on a barrier that counts arrivals of the parent; `held` names one
  kFutexWait = 10,     // a futex wait, by syscall(), that only a signal handler can end; the child lost threads
  kLibcCall = 16,      // a libc function whose lock a lost thread may hold; `held` is a kInFlight, `object` a kLibcCall
  kCudaCall = 28,      // a call of a CUDA driver that was initialised before the fork; `runtime` says which function
  kMpiCall = 29,       // a call of MPI or UCX that was initialised before the fork; `runtime` is a kCudaFunction
  kTimerWait = 40,     // a wait only for signals of the parent's timers; `object` is their set, as for kSignals
  kExit = 17,          // exit() of a child that lost threads; this call never returns
};

enum class SyncOperation : std::uint32_t { kNone = 0, kDestroy = 1, kSignal = 2, kBroadcast = 3, kWait = 4 };

enum class TouchAction : std::uint32_t {
  kNone = 0,
  kAborted = 1,
  kRecovered = 2,
  // The shim made the child the owner of the lock at the fork (--cure=self-held), and this first use of the lock
  // succeeded. Without the cure, a kLock would have waited or failed, and the unlock of a kUnlockRefused would have
  // failed.
  kGiven = 3,
};

enum TouchFlag : std::uint32_t {
  kTouchTimed = 1U << 0U,      // the call has a deadline, so it returns an error instead of hanging
  kTouchTeamGuess = 1U << 2U,  // kParallel: the runtime may make a smaller team than `team` (OMP_DYNAMIC)
  kTouchByOwner = 1U << 1U,    // the shim has noted no holder, but the owner in the lock's memory is a lost thread
  kTouchHandlers = 1U << 8U,   // kFutexWait: some signal has a handler, or it is not known whether one has
  // kCondition: the signal goes to a lost waiter, although a thread of the child waits, too.
  kTouchStolen = 1U << 9U,
  kTouchCured = 1U << 16U,  // kLibcCall: the fork waited until the call in flight had ended, so its lock is free
};

// Written BEFORE the call that may block. A touch without a kTouchEnd has not returned.
struct TouchRecord {
  std::uint64_t fork;  // ref to kFork
  TouchKind kind;
  TouchAction action;  // what the shim did about the touch
  // ref to kHeld (kLock, kUnlockRefused, kCondition, kBarrier), to kInFlight (kLibcCall), else 0
  std::uint64_t held;
  std::uint64_t runtime;  // ref to kRuntime (kParallel), to kCudaFunction (kCudaCall, kMpiCall), else 0
  // The address of the lock, condition variable, barrier or futex word, or of the called function of a runtime, driver
  // or MPI library. kLibcCall: ref to kLibcCall. kTimerWait: a set of signals.
  std::uint64_t object;
  std::uint64_t stack;  // ref to kStack of the caller
  std::uint32_t team;   // kParallel: number of threads that the region would get; kFutexWait: value of the word
  // kParallel: the value of num_threads; 0: no clause; kFutexWait: the operation and its flags
  std::uint32_t clause;
  std::uint32_t flags;      // TouchFlag
  std::uint32_t operation;  // SyncOperation (kCondition, kBarrier), else 0
};
static_assert(sizeof(TouchRecord) == 64);

struct TouchEndRecord {
  std::uint64_t touch;  // ref to kTouch
  std::int32_t result;  // what the call returned; kFutexWait: 0 or errno; 0 for a region
  std::uint32_t reserved;
};
static_assert(sizeof(TouchEndRecord) == 16);

// The name that the program uses for the lock of a touch. Tail: `bytes` of text.
struct LockNameRecord {
  std::uint64_t touch;  // ref to kTouch (kLock) of a lock of kind kCustom
  std::uint32_t bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(LockNameRecord) == 16);

enum class CureMethod : std::uint32_t { kClamp = 1, kQuiesce = 2, kRebuild = 3 };
enum class CureResult : std::uint32_t {
  kApplied = 0,
  kRefusedInRegion = 1,  // the fork is inside a parallel region or an explicit task
  // kQuiesce: omp_pause_resource_all failed or is missing. kClamp: the library contains more than libgomp.
  kRefusedByRuntime = 2,
  // kRebuild: the thread's TLS block was not found, contains data of other code, or belongs to a task that is running.
  kRefusedNoImage = 3,
};

// What was done about one runtime at one fork. kApplied: the child can run the regions that would hang without the cure
// because the pool is lost. The first such region gets a separate record, in which `used` is set.
struct CureRecord {
  std::uint64_t fork;     // ref to kFork
  std::uint64_t runtime;  // ref to kRuntime
  CureMethod method;
  CureResult result;
  std::uint64_t stack;   // ref to kStack of the first region of the child, 0: no region yet
  std::uint32_t used;    // 1: this is the record of that first region
  std::uint32_t clause;  // its num_threads clause, 0: none
  std::uint32_t team;    // the number of threads that this region would have got without the cure
  std::uint32_t reserved;
};
static_assert(sizeof(CureRecord) == 48);

enum class NoteCode : std::uint32_t {
  kThreadTableFull = 1,  // value: threads that were not recorded
  // value: acquisitions that did not fit a thread's array of held locks, or orphans that did not fit the array of the
  // child
  kHeldOverflow = 2,
  kLostWaitsFull = 16,      // value: condition variables and barriers whose lost waiters did not fit the table
  kLockOrderFull = 56,      // value: acquisitions whose lock order did not fit the table; changes in place
  kHoldTimesFull = 57,      // value: acquisitions whose time did not fit the table; changes in place
  kCudaIpcFull = 44,        // value: calls that share device memory and were not recorded; changes in place
  kConfined = 70,           // value: kinds of system calls that the shim does not make because of a seccomp filter
  kHandlersUnwrapped = 30,  // value: atfork handlers that are neither timed nor named while they run
};

// Something that the shim could not see or do. The report has a line about it in `limits`.
struct NoteRecord {
  NoteCode code;
  std::uint32_t reserved;
  std::uint64_t value;
};
static_assert(sizeof(NoteRecord) == 16);

}  // namespace forksight::trace
