#include "collect/lock_layout.hpp"

#include <cstring>

namespace forksight::collect {

namespace {

constexpr std::size_t kMutexBytes = 40;
constexpr std::size_t kRwlockBytes = 56;
constexpr std::size_t kSpinlockBytes = 4;
constexpr std::size_t kGuardBytes = 8;
constexpr std::size_t kConditionBytes = 48;
constexpr std::size_t kBarrierBytes = 20;
constexpr std::size_t kSemaphoreBytes = 12;  // value and waiters in one word, then the sharing flag

std::uint32_t word_at(std::span<const std::uint8_t> memory, std::size_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, memory.data() + offset, sizeof value);
  return value;
}

std::int32_t int_at(std::span<const std::uint8_t> memory, std::size_t offset) {
  return static_cast<std::int32_t>(word_at(memory, offset));
}

// Who has arrived and not left. Who destroys a barrier makes `out` what it would be if all had left that the counter
// has room for (nptl/pthread_barrier_destroy.c), and waits for those who have not.
std::uint32_t barrier_waiters(std::span<const std::uint8_t> memory) {
  constexpr std::uint32_t kThreshold = UINT32_MAX / 2;
  const std::uint32_t in = word_at(memory, 0);
  const std::uint32_t count = word_at(memory, 8);
  const std::uint32_t out = word_at(memory, 16);
  if (out <= in || count == 0) return in - out;
  return kThreshold - kThreshold % count - out;
}

LockState decode_mutex(std::span<const std::uint8_t> memory) {
  constexpr std::uint32_t kRobust = 0x10;
  constexpr std::uint32_t kPriorityInherit = 0x20;
  constexpr std::uint32_t kPriorityProtect = 0x40;
  constexpr std::uint32_t kShared = 0x80;
  constexpr std::uint32_t kTidMask =
      0x3fff'ffff;  // of robust and PI mutexes; the rest are FUTEX_WAITERS, FUTEX_OWNER_DIED
  constexpr std::uint32_t kCeilingMask = 0xfff8'0000;  // of priority-protected ones: the ceiling, not a state
  const std::uint32_t lock = word_at(memory, 0);
  const std::uint32_t kind = word_at(memory, 16);
  LockState state;
  switch (kind & 3U) {
    case 0: state.type = model::MutexType::kNormal; break;
    case 1: state.type = model::MutexType::kRecursive; break;
    case 2: state.type = model::MutexType::kErrorcheck; break;
    default: state.type = model::MutexType::kAdaptive; break;
  }
  state.robust = (kind & kRobust) != 0;
  state.priority_inherit = (kind & kPriorityInherit) != 0;
  // glibc sets the sharing bit of every robust mutex (pthread_mutex_init.c): there it says nothing.
  state.process_shared = (kind & kShared) != 0 && !state.robust;
  state.owner = int_at(memory, 8);
  if (state.robust || state.priority_inherit) {
    state.held = (lock & kTidMask) != 0;
    if (state.held && state.owner == 0) state.owner = static_cast<std::int32_t>(lock & kTidMask);
  } else if ((kind & kPriorityProtect) != 0) {
    state.held = (lock & ~kCeilingMask) != 0;
  } else {
    state.held = lock != 0;
  }
  return state;
}

LockState decode_rwlock(trace::LockKind kind, std::span<const std::uint8_t> memory) {
  constexpr unsigned kReaderShift = 3;  // below it: write phase, write-locked, readers waiting
  LockState state;
  const std::int32_t writer = int_at(memory, 24);
  state.process_shared = word_at(memory, 28) != 0;
  if (kind == trace::LockKind::kRwlockWrite) {
    state.held = writer != 0;
    state.owner = writer;
  } else {
    state.held = word_at(memory, 0) >> kReaderShift != 0;
  }
  return state;
}

}  // namespace

std::optional<LockState> decode_lock(trace::LockKind kind, std::span<const std::uint8_t> memory) {
  LockState state;
  switch (kind) {
    case trace::LockKind::kMutex:
      if (memory.size() < kMutexBytes) return std::nullopt;
      return decode_mutex(memory);
    case trace::LockKind::kRwlockRead:
    case trace::LockKind::kRwlockWrite:
      if (memory.size() < kRwlockBytes) return std::nullopt;
      return decode_rwlock(kind, memory);
    case trace::LockKind::kSpinlock:
      if (memory.size() < kSpinlockBytes) return std::nullopt;
      // x86: 1 is free, 0 and below are taken; other architectures have it the other way round.
      state.held = int_at(memory, 0) <= 0;
      return state;
    case trace::LockKind::kSemaphore:
      if (memory.size() < kSemaphoreBytes) return std::nullopt;
      state.held = word_at(memory, 0) == 0;
      state.process_shared = word_at(memory, 8) != 0;
      return state;
    case trace::LockKind::kGuard:
      if (memory.size() < kGuardBytes) return std::nullopt;
      // The Itanium C++ ABI: byte 0 says that it is done; libstdc++ and libc++abi keep what is under way in byte 1.
      state.held = memory[0] == 0 && memory[1] != 0;
      return state;
    case trace::LockKind::kCustom:
      state.held = true;  // its annotations are all that is known
      return state;
    case trace::LockKind::kBarrier:
      if (memory.size() < kBarrierBytes) return std::nullopt;
      state.waiters = barrier_waiters(memory);
      state.held = state.waiters != 0;
      state.process_shared = word_at(memory, 12) != 0;
      return state;
    case trace::LockKind::kCondition:
      if (memory.size() < kConditionBytes) return std::nullopt;
      state.waiters = word_at(memory, 36) >> 3U;  // wrefs
      state.held = state.waiters != 0;
      state.process_shared = (word_at(memory, 36) & 1U) != 0;
      return state;
  }
  return std::nullopt;
}

}  // namespace forksight::collect
