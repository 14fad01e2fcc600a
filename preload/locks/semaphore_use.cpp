#include "locks/semaphore_use.hpp"

#include <atomic>

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::uint32_t kBuckets = 256;
constexpr std::uint32_t kWays = 4;

using Entry = std::atomic<std::uint64_t>;  // address; 0: free
constinit Entry g_signals[kBuckets][kWays] = {};
constinit std::atomic<bool> g_is_complete{true};

Entry* bucket_of(std::uint64_t address) {
  const std::uint64_t mixed = (address >> 3U) * 0x9e3779b97f4a7c15;
  return g_signals[mixed >> 32U & (kBuckets - 1)];
}

Entry* find(std::uint64_t address) {
  Entry* const bucket = bucket_of(address);
  for (std::uint32_t i = 0; i < kWays; ++i) {
    if (bucket[i].load(std::memory_order_relaxed) == address) return &bucket[i];
  }
  return nullptr;
}

void enter(std::uint64_t address) {
  if (find(address) != nullptr) return;
  Entry* const bucket = bucket_of(address);
  for (std::uint32_t i = 0; i < kWays; ++i) {
    std::uint64_t none = 0;
    if (bucket[i].compare_exchange_strong(none, address, std::memory_order_relaxed)) return;
  }
  g_is_complete.store(false, std::memory_order_relaxed);
  bucket[address >> 5U & (kWays - 1)].store(address, std::memory_order_relaxed);
}

// The address may be in several places, because two threads may have entered it at the same time.
void remove(std::uint64_t address) {
  Entry* const bucket = bucket_of(address);
  for (std::uint32_t i = 0; i < kWays; ++i) {
    std::uint64_t found = address;
    bucket[i].compare_exchange_strong(found, 0, std::memory_order_relaxed);
  }
}

std::uint64_t address_of(const sem_t* semaphore) { return reinterpret_cast<std::uint64_t>(semaphore); }

}  // namespace

void note_semaphore_begins(const sem_t* semaphore, unsigned value) {
  if (value == 1) {
    remove(address_of(semaphore));
  } else {
    enter(address_of(semaphore));
  }
}

void note_semaphore_ends(const sem_t* semaphore) { remove(address_of(semaphore)); }

void note_semaphore_is_signal(const sem_t* semaphore) { enter(address_of(semaphore)); }

bool is_signal_semaphore(std::uint64_t address) { return find(address) != nullptr; }

bool knows_all_signal_semaphores() { return g_is_complete.load(std::memory_order_relaxed); }

}  // namespace forksight
