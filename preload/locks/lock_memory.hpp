// What glibc keeps inside its locks, x86-64, since 2.25 (rwlock) and 2.34 (the others): nptl/
// struct_mutex.h, struct_rwlock.h, semaphoreP.h, and pthread_spin_lock.S for the spinlock's 1 = free.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

struct MutexMemory {
  std::uint32_t lock;  // 0 free; robust and PI kinds keep the owner's tid here
  std::uint32_t count;
  std::int32_t owner;
  std::uint32_t users;
  std::uint32_t kind;
  std::uint32_t spins;
  std::uint64_t list_previous;  // robust: its place among what its owner holds
  std::uint64_t list_next;

  // What a robust mutex's word says beside the owner's tid once that thread has ended: the next one gets it.
  static constexpr std::uint32_t kOwnerDied = 0x40000000;

  bool is_taken() const { return lock != 0 && (!is_robust() || (lock & kOwnerDied) == 0); }
  bool is_robust() const { return (kind & 0x10U) != 0; }
  bool is_pi() const { return (kind & 0x20U) != 0; }
  bool is_shared() const { return (kind & 0x80U) != 0; }
  // Kinds whose unlock and relock compare the caller's tid with the owner's: recursive 1, errorcheck 2, robust, PI.
  bool checks_owner() const { return (kind & 3U) == 1 || (kind & 3U) == 2 || is_robust() || is_pi(); }
};

static_assert(sizeof(MutexMemory) == 40);

struct RwlockMemory {
  std::uint32_t readers;  // count << 3 | phase bits
  std::uint32_t writers;
  std::uint32_t wrphase_futex;
  std::uint32_t writers_futex;
  std::uint32_t pad[2];
  std::int32_t cur_writer;
  std::int32_t shared;
};

struct SemaphoreMemory {
  std::uint32_t value;
  std::uint32_t waiters;
  std::int32_t shared;  // 0 private, 128 shared
};

// Since 2.25 and up to 2.40: waiters are in one of two groups, G1, which signals go to, and G2, which new waiters join.
struct ConditionMemory {
  std::uint64_t wseq;          // waiters so far << 1 | index of G2
  std::uint64_t g1_start;      // position of G1's first waiter << 1
  std::uint32_t g_refs[2];     // waiters inside of a group << 1
  std::uint32_t g_size[2];     // those not signalled yet; G2's is relative
  std::uint32_t g1_orig_size;  // << 2
  std::uint32_t wrefs;         // waiters << 3 | destroyer waits | clock | process-shared
  std::uint32_t g_signals[2];

  std::uint32_t waiters() const { return wrefs >> 3U; }
  std::uint64_t position() const { return wseq >> 1U; }
};
static_assert(sizeof(ConditionMemory) == 48);

struct BarrierMemory {
  std::uint32_t in;     // arrivals so far
  std::uint32_t round;  // arrivals of the rounds that are complete
  std::uint32_t count;
  std::int32_t shared;
  std::uint32_t out;  // arrivals that have left

  std::uint32_t pending() const { return in - round; }
};

constexpr std::size_t lock_bytes(trace::LockKind kind) {
  switch (kind) {
    case trace::LockKind::kMutex: return 40;
    case trace::LockKind::kRwlockRead:
    case trace::LockKind::kRwlockWrite: return 56;
    case trace::LockKind::kSpinlock: return 4;
    case trace::LockKind::kGuard: return 8;
    case trace::LockKind::kCustom: return 0;  // laid out as its author likes
    case trace::LockKind::kSemaphore:
    case trace::LockKind::kBarrier: return 32;
    case trace::LockKind::kCondition: return sizeof(ConditionMemory);
  }
  return 0;
}

template <class T>
T decode_lock(const void* memory) {
  T value;
  memcpy(&value, memory, sizeof value);
  return value;
}

// Some thread is in the initialisation that a guard variable stands for. In the Itanium C++ ABI its first byte says
// that it is done; libstdc++ and libc++abi both keep what is under way in the second.
constexpr bool is_initialising(std::uint64_t guard) { return (guard & 0xff) == 0 && (guard & 0xff00) != 0; }

// Would an acquisition find the lock taken? Reads it where it lies, as that acquisition would.
inline bool is_taken(trace::LockKind kind, const volatile void* lock) {
  const void* const memory = const_cast<const void*>(lock);
  switch (kind) {
    case trace::LockKind::kMutex: return decode_lock<MutexMemory>(memory).is_taken();
    case trace::LockKind::kRwlockRead:
    case trace::LockKind::kRwlockWrite: return decode_lock<RwlockMemory>(memory).readers != 0;
    case trace::LockKind::kSpinlock: return decode_lock<std::int32_t>(memory) != 1;
    case trace::LockKind::kSemaphore: return decode_lock<SemaphoreMemory>(memory).value == 0;
    case trace::LockKind::kGuard: return is_initialising(decode_lock<std::uint64_t>(memory));
    case trace::LockKind::kCustom: break;  // its annotations say so
    case trace::LockKind::kBarrier:
    case trace::LockKind::kCondition: break;  // nobody acquires these
  }
  return false;
}

}  // namespace forksight
