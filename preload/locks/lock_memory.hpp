// What the memory of a lock means, by the layouts of the running libc. With an unknown libc every lock counts as free
// and without an owner: the shim reports nothing about it and does nothing to it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "forksight/abi/barrier.hpp"
#include "forksight/abi/condition.hpp"
#include "forksight/abi/guard.hpp"
#include "forksight/abi/mutex.hpp"
#include "forksight/abi/rwlock.hpp"
#include "forksight/abi/semaphore.hpp"
#include "forksight/abi/spinlock.hpp"
#include "forksight/trace/format.hpp"
#include "guest/memory.hpp"
#include "loader/libc.hpp"

namespace forksight {

using MutexMemory = abi::Mutex;
using RwlockMemory = abi::Rwlock;
using SpinlockMemory = abi::Spinlock;
using SemaphoreMemory = abi::Semaphore;
using BarrierMemory = abi::Barrier;

constexpr std::size_t lock_bytes(trace::LockKind kind) {
  switch (kind) {
    case trace::LockKind::kMutex: return sizeof(MutexMemory);
    case trace::LockKind::kRwlockRead:
    case trace::LockKind::kRwlockWrite: return sizeof(RwlockMemory);
    case trace::LockKind::kSpinlock: return sizeof(SpinlockMemory);
    case trace::LockKind::kGuard: return 8;
    case trace::LockKind::kCustom: return 0;  // only the program knows the layout
    case trace::LockKind::kSemaphore:
    case trace::LockKind::kBarrier: return abi::Barrier::kObjectBytes;
    case trace::LockKind::kCondition: return abi::kConditionBytes;
  }
  return 0;
}

// Returns a free lock if the layout in the running libc is not known.
template <class T>
T decode_lock(const void* memory) {
  return T::kVersions.have(g_libc.version) ? abi::load<T>(memory) : T{};
}

// Reads a lock whose memory may not exist any more. False: the memory does not exist, or the layout is not known.
template <class T>
bool read_lock(const volatile void* lock, T& to) {
  return T::kVersions.have(g_libc.version) && read_memory(const_cast<const void*>(lock), &to, sizeof to) == sizeof to;
}

inline bool is_initialising(const void* guard) { return abi::is_initialising(abi::load<std::uint64_t>(guard)); }

// True if an acquisition would find the lock taken. Reads the lock in place, as the acquisition itself will do.
inline bool is_taken(trace::LockKind kind, const volatile void* lock) {
  const void* const memory = const_cast<const void*>(lock);
  switch (kind) {
    case trace::LockKind::kMutex: return decode_lock<MutexMemory>(memory).is_held();
    case trace::LockKind::kRwlockRead:
    case trace::LockKind::kRwlockWrite: return decode_lock<RwlockMemory>(memory).is_taken();
    case trace::LockKind::kSpinlock: return decode_lock<SpinlockMemory>(memory).is_held();
    case trace::LockKind::kSemaphore: return decode_lock<SemaphoreMemory>(memory).is_empty();
    case trace::LockKind::kGuard: return is_initialising(memory);
    case trace::LockKind::kCustom: break;  // the program reports its waits by annotations
    case trace::LockKind::kBarrier:
    case trace::LockKind::kCondition: break;  // these are not acquired
  }
  return false;
}

}  // namespace forksight
