// A bounded set of keys: open addressing, filled by compare-exchange, never emptied. find() and add() return the
// position of a key. Other tables keep data about the key at the same position. async-signal-safe and fork-child-safe.
//   In a forked child, a place with a key of an ancestor counts as free. The keys of the last `kKept` generations of
//   ancestors are an exception: they stay readable.
#pragma once

#include <atomic>
#include <cstdint>

#include "record/slots.hpp"

namespace forksight {

// mix(a, b) equals mix(b, a). So each hash must begin with kSeed. Otherwise an exchange of its first two values would
// not change the hash.
constexpr std::uint64_t kSeed = 0x243f6a8885a308d3;
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29U;
}

inline constexpr std::uint32_t kPlaces = 4096;
inline constexpr std::uint32_t kNoPlace = 0xffff'ffff;

template <std::uint32_t kKept>
struct KeyTable {
  static constexpr std::uint32_t kTries = 64;

  // A key is a hash with the epoch of the process (record/slots.hpp) in the top 16 bits. A key is never 0.
  static std::uint64_t key_of(std::uint64_t hash) { return hash >> 16U | std::uint64_t{epoch() & 0xffffU} << 48U | 1U; }
  // How many epochs ago this key was made. The key 0, which is in empty places, counts as very old.
  static std::uint32_t age(std::uint64_t key) {
    return key == 0 ? 0xffffU : (epoch() - static_cast<std::uint32_t>(key >> 48U)) & 0xffffU;
  }

  std::uint32_t find(std::uint64_t key) const {
    for (std::uint32_t step = 0; step < kTries; ++step) {
      const std::uint32_t at = place(key, step);
      const std::uint64_t found = keys[at].load(std::memory_order_acquire);
      if (found == key) return at;
      if (age(found) > kKept) return kNoPlace;
    }
    return kNoPlace;
  }
  // Adds the key if the table does not have it yet. Returns the position of the key. kNoPlace: no place near the hash
  // is free.
  std::uint32_t add(std::uint64_t key) {
    for (std::uint32_t step = 0; step < kTries; ++step) {
      const std::uint32_t at = place(key, step);
      std::uint64_t found = keys[at].load(std::memory_order_acquire);
      if (age(found) > kKept && keys[at].compare_exchange_strong(found, key, std::memory_order_acq_rel)) return at;
      if (found == key) return at;
    }
    return kNoPlace;
  }

  std::atomic<std::uint64_t> keys[kPlaces];

 private:
  static std::uint32_t place(std::uint64_t key, std::uint32_t step) {
    return (static_cast<std::uint32_t>(key >> 8U) + step) % kPlaces;
  }
};

}  // namespace forksight
