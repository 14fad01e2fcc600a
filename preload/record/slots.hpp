// One slot a thread: who it is and which locks it holds. All slots lie in private memory, so a forked child has a
// frozen copy of every thread's slot as it was at the instant of the fork. The first slots are part of the library;
// more are mapped as threads come, for a program may have little address space, or lock all of its memory.
//
// Only its own thread writes the held array of a slot. Readers are the forked child (nothing moves there) and the
// forking thread (which only counts). Slots of the parent's other threads are recognised in the child by their epoch:
// they stay readable until reused, and nothing needs to be cleared after a fork.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"

namespace forksight {

inline constexpr std::uint32_t kSlotBytes = 8192;
inline constexpr std::uint32_t kChunkSlots = 64;  // are mapped at a time
inline constexpr std::uint32_t kMaxSlots = 32768;
// The first of them, of which is known what others' prepare handlers did to their threads, and in which order they
// lock.
inline constexpr std::uint32_t kFirstSlots = 4096;
inline constexpr std::uint32_t kMaxHeldLocks = 63;
inline constexpr std::uint32_t kCreationStackBytes = 4096;

struct HeldLock {
  std::uint64_t lock;  // tagged address; 0: a hole
  Site site;
};
static_assert(sizeof(HeldLock) == 32);
// The array and one entry more, aligned so that the low bits of an entry's address tell the end.
inline constexpr std::uint32_t kHeldArrayBytes = (1 + kMaxHeldLocks) * sizeof(HeldLock);

// An address with the lock's kind in its top byte, which user-space addresses leave free (they end below 2^47, or 2^56
// with five-level tables). A mutex, the commonest, is tagged 0.
inline constexpr unsigned kKindShift = 56;
inline constexpr std::uint64_t kSharedHold = std::uint64_t{1} << 63U;  // of a lock of one's own: held by a reader
inline std::uint64_t tag_lock(const volatile void* lock, trace::LockKind kind) {
  return reinterpret_cast<std::uint64_t>(lock) | std::uint64_t{static_cast<std::uint32_t>(kind) - 1} << kKindShift;
}
// Is this the tag of the libc object at `lock`, of whatever kind: at one address is one of them. An annotated lock may
// lie at the same address as one of libc's.
constexpr std::uint64_t kLibcKinds = std::uint64_t{7} << kKindShift;
static_assert((static_cast<std::uint32_t>(trace::LockKind::kGuard) - 1) <= 7 &&
              static_cast<std::uint32_t>(trace::LockKind::kCustom) - 1 == 8);
constexpr bool is_libc_lock_at(std::uint64_t tagged, std::uint64_t lock) {
  return ((tagged ^ lock) & ~kLibcKinds) == 0;
}
constexpr std::uint64_t lock_address(std::uint64_t tagged) { return tagged & ((std::uint64_t{1} << kKindShift) - 1); }
constexpr trace::LockKind lock_kind(std::uint64_t tagged) {
  return static_cast<trace::LockKind>(((tagged & ~kSharedHold) >> kKindShift) + 1);
}

inline constexpr std::uint32_t kMaxRuntimes = 8;

// One OpenMP runtime at the fork that a thread is in the middle of: kept in its slot, so that the child has it.
struct RuntimeAtFork {
  std::uint64_t record;     // ref of the kRuntime record
  std::uint64_t tls_block;  // the thread's TLS block of the runtime, 0: none
  std::uint32_t workers_before;
  std::uint32_t workers_lost;
  trace::CureMethod method;  // valid if `due`
  trace::CureResult result;
  bool due;          // a cure was chosen: applied or refused
  bool is_quiesced;  // at the entry of fork()
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
  kWrapper,   // fork(): its hook sees the entry and the return
  kInLibc,    // daemon, forkpty: libc forks inside of itself, only atfork handlers are called
  kBypassed,  // _Fork, clone, syscall: no atfork handler is called; the caller may be a signal handler
};

enum class SlotState : std::uint32_t { kFree = 0, kReserved = 1, kLive = 2, kEnded = 3 };

struct Slot {
  HeldLock* top;  // one past the innermost entry of `held`
  std::atomic<SlotState> state;
  std::uint32_t overflow;  // acquisitions that found the array full
  std::uint32_t epoch;     // epoch() of the process that the thread lives in
  std::uint32_t index;     // of this slot
  std::int32_t tid;
  std::int32_t lock_tid;  // what libc takes for its id: own_ids.hpp
  std::int32_t creator_tid;
  std::uint64_t wait_object;
  std::uint64_t taking;  // the lock that the thread is asking for, in a child with orphans; 0: none
  trace::WaitKind wait_kind;
  std::uint32_t flags;           // trace::ThreadFlag
  std::uint32_t call_depth;      // entries of `calls` in use; more than it has: the innermost are not kept
  std::uint32_t call_serial;     // of the outermost call: tells one from the next
  std::uint32_t call_outlasted;  // the serial of a call that a fork has waited for in vain
  bool is_closing_holes;         // in the middle of moving entries of `held`
  HeldLock* moving_from;         // the entry that is on its way, null: none; see is_moved()
  HeldLock* moving_to;
  bool holds_gate;  // this thread's fork keeps others from new calls
  std::uint64_t thread_pointer;
  std::uint64_t stack_top;  // 0: unknown
  bool is_initial_stack;    // the one that the kernel made for the process
  bool is_retired;          // a worker that its runtime has let go: it may not have ended yet
  std::uint64_t start_routine;
  std::uint64_t argument;
  std::uint64_t created_ns;
  char name[16];
  std::uint64_t record;       // ref of the kThread record in this trace, 0: not written
  std::uint64_t fork_record;  // ref of the fork that this thread is in the middle of
  std::uint64_t open_touch;   // ref of a touch that the program itself says the end of (annotations), 0: none
  ForkKind fork_kind;
  std::uint64_t fork_entry_ns;
  Site fork_site;                 // of the fork() wrapper; pc 0: not inside of it
  Site last_fork_site;            // of the last fork whose stack was recorded, and ...
  std::uint64_t last_fork_stack;  // ... the ref of that record, 0: none
  Site creation_site;
  std::uint32_t creation_bytes;
  std::uint32_t creation_cut;
  Site wait_site;               // of the call that waits for wait_object
  std::uint64_t handler_run;    // ref of the kHandlerRun record of the fork that this thread is in, 0: none
  std::uint64_t untimed_run;    // the one that all its forks share whose handlers are not timed, 0: none yet
  std::uint32_t handler_depth;  // atfork handlers that this thread is inside of
  std::uint32_t held_at_entry;  // locks held when fork() was entered; valid while fork_site.pc is not 0
  std::uint64_t life;           // see foresight/lives.hpp; 0: none yet
  std::uint64_t moment;         // valid if it has a life
  std::uint64_t life_record;    // ref of the kThreadLife record, 0: none
  std::uint32_t lived_count;    // slots that `lived_at_entry` speaks of
  RuntimeAtFork runtimes[kMaxRuntimes];
  CallInFlight calls[kMaxCalls];
  std::uint64_t lived_at_entry[kFirstSlots / 64];  // a bit a slot: another thread's, alive when fork() was entered
  // The first entry is never used: its lock stays 0, so that the innermost entry can be compared without asking whether
  // there is one.
  alignas(kHeldArrayBytes) HeldLock held[1 + kMaxHeldLocks];
  std::byte creation_stack[kCreationStackBytes];
};
static_assert(sizeof(Slot) == kSlotBytes);

// Locks held by a thread, holes included.
inline std::uint32_t depth(const Slot& slot) { return static_cast<std::uint32_t>(slot.top - &slot.held[1]); }

// A fork fell into the move of an entry: it stands in both places, and counts in the new one.
inline bool is_moved(const Slot& slot, const HeldLock* entry) {
  return entry == slot.moving_from && slot.moving_to->lock == entry->lock;
}

// Null until the thread's first hook, and for ever where there is no table or no free slot.
extern thread_local constinit Slot* t_slot;
// What the lock path looks at: t_slot, but null in a forked child that inherited orphaned locks, where every
// acquisition takes the slow path and looks before it blocks, and where orders or times of locks are asked for. So one
// branch tells all the rare cases.
extern thread_local constinit Slot* t_fast asm("forksight_t_fast");
// Between our prepare handler and the end of the fork that this thread is in. Beside errno, where libc writes at each
// fork, too: a write to the slot after the fork would cost the parent a page.
extern thread_local constinit bool t_fork_is_told;
// Why every lock takes the slow path; 0: it does not.
enum SlowLocks : std::uint32_t {
  kSlowOrphans = 1,    // this process inherited orphaned locks
  kSlowForesight = 2,  // orders or times of locks are asked for
};
extern std::uint32_t g_slow_locks;
// What t_fast is to be outside of atfork handlers.
inline Slot* fast_slot(Slot* slot) { return g_slow_locks != 0 ? nullptr : slot; }
// A thread inside of a handler takes the slow path of every lock, and says what it waits for before it blocks.
inline bool is_in_handler(const Slot* slot) { return slot != nullptr && slot->handler_depth != 0; }
// The epoch of this process: one more than its parent's; 0 before the shim has started.
extern std::uint32_t g_epoch;
inline std::uint32_t epoch() { return g_epoch; }
void begin_next_epoch();
extern std::uint32_t g_lost_threads_unrecorded;
extern std::atomic<bool> g_had_threads;

// From here on threads get slots. By the initialiser.
void start_slots();
// The slot of the calling thread, registered now if need be; null if that is impossible. Preserves errno.
Slot* own_slot();
// For a thread about to be created. Null: the thread goes unrecorded.
Slot* reserve_slot();
void release_slot(Slot* slot);
// The thread's own function has returned.
void end_slot(Slot* slot);

std::uint32_t slot_count();  // slots that were ever used
Slot& slot_at(std::uint32_t index);
// The thread that locks know as `lock_tid`.
Slot* find_slot_by_lock_tid(std::int32_t lock_tid, bool of_this_process);
Slot* find_slot_by_thread_pointer(std::uint64_t thread_pointer);

// The bytes from `sp` to the end of the stack of `slot`, at most `limit`; where the end is not known, to the end of
// sp's page, which is mapped for certain.
struct StackBound {
  std::size_t bytes;
  bool cut;
  bool mapped;  // all of it, for certain: it may be read without asking the kernel
};
StackBound stack_bound(const Slot* slot, std::uint64_t sp, std::size_t limit);

}  // namespace forksight
