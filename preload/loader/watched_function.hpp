// The functions of other libraries that the shim's wrappers stand for. If a function exists several times (two copies
// of MPI, opened RTLD_LOCAL), each copy has a wrapper of its own. A wrapper stands for one function as long as the
// library of that function is loaded.
#pragma once

#include <atomic>
#include <cstdint>

#include "loader/loaded_object.hpp"

namespace forksight {

struct WatchedFunction {
  std::atomic<std::uint64_t> address;  // 0: the wrapper is free
  std::atomic<std::uint64_t> object;   // identify() of the object that contains it
};

// Returns the index of the wrapper that stands for `function` from now on; kWrappers: all wrappers stand for other
// functions, or no loaded object contains the function. Lock-free.
template <std::uint32_t kWrappers>
std::uint32_t claim_wrapper(WatchedFunction (&row)[kWrappers], std::uint64_t function) {
  const std::uint64_t object = identify(find_object(function));
  if (object == 0) return kWrappers;
  for (std::uint32_t i = 0; i < kWrappers; ++i) {
    if (row[i].address.load(std::memory_order_acquire) == function && row[i].object.load() == object) return i;
  }
  for (std::uint32_t i = 0; i < kWrappers; ++i) {
    std::uint64_t known = row[i].address.load(std::memory_order_acquire);
    // A wrapper is free if the library of its function was closed, because all callers that were bound to that library
    // were then closed, too.
    const bool is_free = known == 0 || identify(find_object(known)) != row[i].object.load();
    if (!is_free || !row[i].address.compare_exchange_strong(known, function, std::memory_order_acq_rel)) continue;
    row[i].object.store(object);
    return i;
  }
  return kWrappers;
}

// Forgets the functions of a library that was closed and had these addresses. A function is kept if the same library is
// loaded there again.
template <std::uint32_t kWrappers>
void forget_closed(WatchedFunction (&row)[kWrappers], std::uint64_t start, std::uint64_t end) {
  for (WatchedFunction& watched : row) {
    std::uint64_t known = watched.address.load(std::memory_order_acquire);
    if (known < start || known >= end || identify(find_object(known)) == watched.object.load()) continue;
    watched.address.compare_exchange_strong(known, 0);
  }
}

}  // namespace forksight
