#include "inspect/python/python_locks.hpp"

#include <array>
#include <cstring>
#include <string_view>

namespace forksight::inspect {
namespace {

// struct wait_entry of Python/parking_lot.c. No header declares it and no table describes it. It was the same in
// 3.13.5, 3.14.10 and 3.15.2. An entry is part of a list. find_python_park() checks the links of the list, so that
// memory with another layout is not mistaken for an entry.
constexpr std::uint64_t kAwaitedBefore = 8;  // the awaited address lies before the semaphore
struct Waiting {
  std::array<std::byte, 32> semaphore;  // sem_t
  // struct llist_node: points to the node of another entry of the same bucket, or to the head of the bucket's list
  std::uint64_t next;
  std::uint64_t previous;
  std::uint8_t is_unparking;
};
constexpr std::uint64_t kNode = 32;  // offset of `next` in Waiting
constexpr std::uint64_t kPrevious = 8;

// Bits of the byte of a PyMutex. An event that is not set yet has only kParked.
constexpr std::uint8_t kLocked = 1;
constexpr std::uint8_t kParked = 2;

// PyMutex is the first member of a lock object. Since 3.14, the PyMutex of an RLock is the first member of a
// _PyRecursiveMutex. The next members of the _PyRecursiveMutex are the thread that holds the lock, and how often that
// thread holds it.
constexpr std::uint64_t kTypeBefore = 8;
constexpr std::uint64_t kOwner = 8;
constexpr std::uint64_t kCount = 16;

bool has_type_name(const image::Memory& memory, const PythonLayout& layout, std::uint64_t type, std::string_view name) {
  std::array<char, 32> text{};
  const auto at = memory.value<std::uint64_t>(type + layout.type_name).value_or(0);
  if (at == 0 || memory.read(at, std::as_writable_bytes(std::span(text).first(name.size() + 1))) != name.size() + 1)
    return false;
  return std::string_view(text.data(), name.size()) == name && text.at(name.size()) == '\0';
}

std::uint64_t find_owner(const image::Memory& memory, const PythonLayout& layout, std::uint64_t lock) {
  constexpr int kFirstWithRecursiveMutex = 14;
  if (layout.minor < kFirstWithRecursiveMutex || lock < kTypeBefore) return 0;
  const auto type = memory.value<std::uint64_t>(lock - kTypeBefore).value_or(0);
  if (!has_type_name(memory, layout, type, "_thread.RLock")) return 0;
  const auto owner = memory.value<std::uint64_t>(lock + kOwner).value_or(0);
  const auto count = memory.value<std::uint64_t>(lock + kCount);
  return count ? owner : 0;
}

}  // namespace

std::optional<PythonPark> find_python_park(const image::Memory& memory, const PythonLayout& layout,
                                           std::uint64_t semaphore) {
  if (layout.minor < kFirstDescribedMinor || semaphore < kAwaitedBefore) return std::nullopt;
  const auto awaited = memory.value<std::uint64_t>(semaphore - kAwaitedBefore).value_or(0);
  const auto waiting = memory.value<Waiting>(semaphore);
  if (awaited == 0 || !waiting || waiting->is_unparking != 0) return std::nullopt;
  const std::uint64_t node = semaphore + kNode;
  const bool is_listed = memory.value<std::uint64_t>(waiting->next + kPrevious) == node &&
                         memory.value<std::uint64_t>(waiting->previous) == node;
  const auto byte = memory.value<std::uint8_t>(awaited);
  if (!is_listed || !byte) return std::nullopt;
  PythonPark park;
  park.address = awaited;
  park.is_lock = *byte == (kLocked | kParked);
  if (park.is_lock) park.owner = find_owner(memory, layout, awaited);
  return park;
}

}  // namespace forksight::inspect
