// A slot contains what the shim knows about one thread, for example its identity and the locks that it holds. All slots
// are in private memory, so a forked child has a frozen copy of every thread's slot at the instant of the fork. The
// first slots are part of the library. Further slots are mapped only when there are more threads, because a program may
// have little address space, or lock all of its memory.
//   Only the thread of a slot writes the slot's held array (`held`). A forked child reads the frozen arrays of the
//   parent's threads. Two kinds of code read arrays of living threads: a forking thread, which counts the entries, and
//   two files that expect an array to change while they read it (handler_wait.cpp, orphan_proof.cpp). In the child, the
//   epoch of a slot shows whether the slot belongs to a thread that only the parent has. The child can read such a slot
//   until the slot is reused. So nothing needs to be cleared after a fork.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"

namespace forksight {

inline constexpr std::uint32_t kSlotBytes = 8192;
inline constexpr std::uint32_t kChunkSlots = 64;  // this many slots are mapped at a time
inline constexpr std::uint32_t kMaxSlots = 32768;
// The number of slots for which the shim records everything. For a thread in any later slot, the shim does not record
// whether the thread ends during the prepare handlers, in which order it takes locks, or how long it holds the locks.
inline constexpr std::uint32_t kFirstSlots = 4096;
inline constexpr std::uint32_t kMaxHeldLocks = 63;
inline constexpr std::uint32_t kCreationStackBytes = 4096;

struct HeldLock {
  std::uint64_t lock;  // tagged address; 0: a hole
  Site site;
};
static_assert(sizeof(HeldLock) == 32);
// The size of a held array, including its first entry, which is never used. The array is aligned to this size, so that
// the low bits of an entry's address show the end of the array.
inline constexpr std::uint32_t kHeldArrayBytes = (1 + kMaxHeldLocks) * sizeof(HeldLock);

// A tagged address has the kind of the lock in its top byte. This byte is 0 in every address of user space: such
// addresses end below 2^47, or below 2^56 with five-level page tables. A mutex, the most frequent kind, has the tag 0.
inline constexpr unsigned kKindShift = 56;
inline constexpr std::uint64_t kSharedHold = std::uint64_t{1} << 63U;  // for an annotated lock: held by a reader
inline std::uint64_t tag_lock(const volatile void* lock, trace::LockKind kind) {
  return reinterpret_cast<std::uint64_t>(lock) | std::uint64_t{static_cast<std::uint32_t>(kind) - 1} << kKindShift;
}
constexpr std::uint64_t kLibcKinds = std::uint64_t{7} << kKindShift;
static_assert((static_cast<std::uint32_t>(trace::LockKind::kGuard) - 1) <= 7 &&
              static_cast<std::uint32_t>(trace::LockKind::kCustom) - 1 == 8);
// True if `tagged` stands for a lock of libc whose address is `lock`. The kinds of locks of libc are not compared,
// because only one of them can be at an address. False if `tagged` stands for an annotated lock, which may have the
// same address.
constexpr bool is_libc_lock_at(std::uint64_t tagged, std::uint64_t lock) {
  return ((tagged ^ lock) & ~kLibcKinds) == 0;
}
constexpr std::uint64_t lock_address(std::uint64_t tagged) { return tagged & ((std::uint64_t{1} << kKindShift) - 1); }
constexpr trace::LockKind lock_kind(std::uint64_t tagged) {
  return static_cast<trace::LockKind>(((tagged & ~kSharedHold) >> kKindShift) + 1);
}

inline constexpr std::uint32_t kMaxRuntimes = 8;

// What is known about one OpenMP runtime while a thread forks. These facts are in the slot of the forking thread, so
// that the child has a copy of them.
struct RuntimeAtFork {
  std::uint64_t record;     // ref of the kRuntime record
  std::uint64_t tls_block;  // the thread's TLS block of the runtime, 0: none
  std::uint32_t workers_before;
  std::uint32_t workers_lost;
  trace::CureMethod method;  // `method` and `result` are valid if `due` is true
  trace::CureResult result;
  bool due;          // the pool needs a cure: `result` says whether it is applied or refused
  bool is_quiesced;  // the pool was ended at the beginning of fork()
  bool dynamic;
  std::int32_t max_threads;
  std::int32_t max_active_levels;
};

inline constexpr std::uint32_t kMaxCalls = 6;

// A libc function that the thread is inside of.
struct CallInFlight {
  std::uint32_t call;  // 1 + index into the list of calls; 0: a hole
  std::uint32_t reserved;
  Site site;
};

enum class ForkKind : std::uint8_t {
  kWrapper,   // fork(), daemon(), forkpty(): a hook sees the beginning and the return
  kInLibc,    // no hook sees the beginning, because libc calls its own fork(): only atfork handlers are called
  kBypassed,  // _Fork(), clone(), syscall(): no atfork handler is called; the caller may be a signal handler
};

enum class SlotState : std::uint32_t { kFree = 0, kReserved = 1, kLive = 2, kEnded = 3 };

struct Slot {
  HeldLock* top;  // one past the innermost entry of `held`
  std::atomic<SlotState> state;
  std::uint32_t overflow;  // acquisitions that found the array full
  std::uint32_t epoch;     // epoch() of the process that the thread lives in
  std::uint32_t index;     // of this slot
  std::int32_t tid;
  std::int32_t lock_tid;  // the thread's id as libc writes it into locks: own_ids.hpp
  std::int32_t creator_tid;
  std::uint64_t wait_object;
  // The lock that the thread is asking for, in a child with orphans and in an atfork handler; 0: none.
  std::uint64_t taking;
  trace::WaitKind wait_kind;
  std::uint32_t flags;  // trace::ThreadFlag
  // The number of libc calls that the thread is inside of. `calls` contains the outermost of them, as many as fit.
  std::uint32_t call_depth;
  std::uint32_t call_serial;     // number of the outermost call; it differs for each outermost call
  std::uint32_t call_outlasted;  // the call_serial of a call that did not end while a fork waited for it
  bool is_closing_holes;         // the thread is moving entries of `held`
  HeldLock* moving_from;         // the entry that is being moved; null: none; see is_moved()
  HeldLock* moving_to;
  bool holds_gate;  // a fork of this thread keeps other threads from new libc calls (--cure=quiesce-libc)
  std::uint64_t thread_pointer;
  std::uint64_t stack_top;  // 0: unknown
  bool is_initial_stack;    // this is the thread that the kernel made for the process
  bool is_retired;          // a worker that its runtime has released: it may not have ended yet
  std::uint64_t start_routine;
  std::uint64_t argument;
  std::uint64_t created_ns;
  char name[16];
  std::uint64_t record;       // ref of the kThread record in this trace, 0: not written
  std::uint64_t fork_record;  // ref of the fork that this thread is in the middle of
  std::uint64_t open_touch;   // ref of a touch whose end the program itself reports (annotations); 0: none
  ForkKind fork_kind;
  std::uint64_t fork_entry_ns;
  Site fork_site;                 // where fork() was called; cleared by the shim's prepare handler; pc 0: not known
  Site last_fork_site;            // where the last fork with a recorded stack was called
  std::uint64_t last_fork_stack;  // ref of the record of that stack; 0: none
  Site creation_site;
  std::uint32_t creation_bytes;
  std::uint32_t creation_cut;
  Site wait_site;               // where the call was made that waits for wait_object
  std::uint64_t handler_run;    // ref of the kHandlerRun record of the fork that this thread is in, 0: none
  std::uint64_t untimed_run;    // the kHandlerRun record that all untimed forks of this thread share; 0: none yet
  std::uint32_t handler_depth;  // atfork handlers that this thread is inside of
  std::uint32_t held_at_entry;  // locks held when fork() was entered; valid while fork_site.pc is not 0
  std::uint64_t life;           // see foresight/lives.hpp; 0: none yet
  std::uint64_t moment;         // valid if `life` is not 0
  std::uint64_t life_record;    // ref of the kThreadLife record; 0: none
  std::uint32_t lived_count;    // number of slots that `lived_at_entry` covers
  RuntimeAtFork runtimes[kMaxRuntimes];
  CallInFlight calls[kMaxCalls];
  // One bit for each slot. 1: the slot belongs to another thread that lived at the beginning of fork().
  std::uint64_t lived_at_entry[kFirstSlots / 64];
  // The first entry is never used, and its lock stays 0. So code can compare the entry before `top` with a lock without
  // checking first whether the thread holds any lock.
  alignas(kHeldArrayBytes) HeldLock held[1 + kMaxHeldLocks];
  std::byte creation_stack[kCreationStackBytes];
};
static_assert(sizeof(Slot) == kSlotBytes);

// The number of locks that a thread holds, holes included.
inline std::uint32_t depth(const Slot& slot) { return static_cast<std::uint32_t>(slot.top - &slot.held[1]); }

// True if a fork interrupted the move of this entry after the entry was copied. Then both the old and the new entry
// have the lock, and only the new one counts.
inline bool is_moved(const Slot& slot, const HeldLock* entry) {
  return entry == slot.moving_from && slot.moving_to->lock == entry->lock;
}

// The slot of the calling thread. Null until the thread calls its first hook, and for ever if no slot was free then.
extern thread_local constinit Slot* t_slot asm("forksight_t_slot");
// The slot for the fast path of a lock. It is null if every lock must take the slow path: in a forked child that
// inherited orphaned locks, inside of an atfork handler, and if orders or times of locks are recorded. Otherwise it
// equals t_slot. So one branch covers all rare cases.
extern thread_local constinit Slot* t_fast asm("forksight_t_fast");
// True between the shim's prepare handler and the end of the fork that this thread is in. This flag is in TLS near
// errno, which libc also writes at each fork. If the flag were in the slot, the kernel would have to copy another page
// for the parent.
extern thread_local constinit bool t_fork_is_told;
// The reasons why every lock takes the slow path. 0: there is no such reason.
enum SlowLocks : std::uint32_t {
  kSlowOrphans = 1,    // this process inherited orphaned locks
  kSlowForesight = 2,  // orders or times of locks are recorded (FORKSIGHT_LOCK_ORDER, FORKSIGHT_PREDICT)
};
extern std::uint32_t g_slow_locks;
// The value of t_fast outside of atfork handlers.
inline Slot* fast_slot(Slot* slot) { return g_slow_locks != 0 ? nullptr : slot; }
// True if the thread is inside of an atfork handler. Such a thread takes the slow path of every lock. Before it blocks,
// it records what it waits for.
inline bool is_in_handler(const Slot* slot) { return slot != nullptr && slot->handler_depth != 0; }
// The epoch of this process: one more than the epoch of its parent; 0 before the shim has started.
extern std::uint32_t g_epoch;
inline std::uint32_t epoch() { return g_epoch; }
void begin_next_epoch();
// The number of threads that got no slot, because the table was full.
extern std::uint32_t g_lost_threads_unrecorded;
// True if this process has, or had, a second thread, or if its forks are recorded for another reason (CUDA, MPI).
extern std::atomic<bool> g_had_threads;

// From this call on, threads get slots. Called by the initialiser.
void start_slots();
// The slot of the calling thread, registered now if needed; null if that is impossible. Preserves errno.
Slot* own_slot();
// Reserves a slot for a thread that is about to be created. Null: the thread is not recorded.
Slot* reserve_slot();
void release_slot(Slot* slot);
// Called when the start routine of the thread has ended, or when the thread ends by the bare system call.
void end_slot(Slot* slot);

std::uint32_t slot_count();  // how many slots were ever used
Slot& slot_at(std::uint32_t index);
// The slot of the thread whose id in locks is `lock_tid`; null: none.
Slot* find_slot_by_lock_tid(std::int32_t lock_tid, bool of_this_process);
Slot* find_slot_by_thread_pointer(std::uint64_t thread_pointer);

// The number of bytes from `sp` to the end of the stack of `slot`, but at most `limit`. If the end of the stack is not
// known, the bytes end with the page of `sp`, which is certainly mapped.
struct StackBound {
  std::size_t bytes;
  bool cut;
  bool mapped;  // all of it is certainly mapped, so it may be read without the kernel
};
StackBound stack_bound(const Slot* slot, std::uint64_t sp, std::size_t limit);

}  // namespace forksight
