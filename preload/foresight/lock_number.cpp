#include "foresight/lock_number.hpp"

#include <atomic>

#include "locks/lock_memory.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::LockKind;

constexpr std::size_t kMutexWord = offsetof(MutexMemory, list_next);
constexpr std::size_t kRwlockWord = offsetof(RwlockMemory, spare);

// The mark in a lock consists of eight fixed bits, sixteen bits of a hash of the lock's address, and the number. If the
// program copies a lock, the mark in the copy does not fit the address of the copy, so the copy gets a number of its
// own.
constexpr unsigned kNumberBits = 40;
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kNumberBits) - 1;
constexpr std::uint64_t kSign = 0xf5;
constexpr unsigned kSignShift = 56;

constinit std::atomic<std::uint64_t> g_next{1};

std::uint64_t head_of(const volatile void* lock) {
  const std::uint64_t mixed = reinterpret_cast<std::uint64_t>(lock) * 0x9e3779b97f4a7c15;
  return kSign << kSignShift | (mixed >> 48U) << kNumberBits;
}

// Returns the word of the lock in which the mark is kept, or null if this lock has no place for a mark.
std::uint64_t* word_of(LockKind kind, const volatile void* lock) {
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(lock));
  if (!MutexMemory::kVersions.have(g_libc.version) || !RwlockMemory::kVersions.have(g_libc.version)) return nullptr;
  if (kind == LockKind::kMutex) {
    const auto mutex = decode_lock<MutexMemory>(bytes);
    return mutex.is_robust() || mutex.is_shared() ? nullptr : reinterpret_cast<std::uint64_t*>(bytes + kMutexWord);
  }
  if (kind != LockKind::kRwlockRead && kind != LockKind::kRwlockWrite) return nullptr;
  return decode_lock<RwlockMemory>(bytes).shared != 0 ? nullptr : reinterpret_cast<std::uint64_t*>(bytes + kRwlockWord);
}

}  // namespace

std::uint64_t number_of(LockKind kind, const volatile void* lock) {
  std::uint64_t* const word = word_of(kind, lock);
  if (word == nullptr) return 0;
  const std::uint64_t head = head_of(lock);
  std::uint64_t found = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  while ((found & ~kNumberMask) != head) {
    if (found != 0 && found >> kSignShift != kSign) return 0;
    // Several readers may get here at the same time.
    const std::uint64_t mark = head | (g_next.fetch_add(1, std::memory_order_relaxed) & kNumberMask);
    if (__atomic_compare_exchange_n(word, &found, mark, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) found = mark;
  }
  return found & kNumberMask;
}

std::uint64_t next_lock_number() { return g_next.load(std::memory_order_relaxed); }

}  // namespace forksight
