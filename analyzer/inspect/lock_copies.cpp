#include "inspect/lock_copies.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "files/budgets.hpp"
#include "inspect/python_semaphores.hpp"

namespace forksight::inspect {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kChunk = std::uint64_t{1} << 20U;

// True if both processes have this pointer at `at`, and the word after it is the same in both, too. That word is the
// list of weak references to a Lock, or the owner of an RLock or of a buffered file. The lock that is taken until a
// thread ends has a weak reference. Such a lock is destroyed in the child, and the next lock often gets its memory.
bool is_same_object(const image::Memory& child, const image::Memory& parent, std::uint64_t at, std::uint64_t lock) {
  const auto own = child.value<std::array<std::uint64_t, 2>>(at);
  return own && own->front() == lock && own == parent.value<std::array<std::uint64_t, 2>>(at);
}

}  // namespace

bool LockCopies::search(const proc::Mapping& mapping, const image::Memory& child, const image::Memory& parent,
                        std::uint64_t lock) {
  for (std::uint64_t at = mapping.start; at < mapping.end; at += kChunk) {
    const std::uint64_t size = std::min(kChunk, mapping.end - at);
    if (searched_ + size > files::kMaxSemaphoreSearchBytes) return false;
    searched_ += size;
    const std::vector<std::byte> bytes = child.bytes(at, size);
    for (std::size_t offset = 0; offset + kWord <= bytes.size(); offset += kWord) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + offset, kWord);
      if (word != lock || !is_same_object(child, parent, at + offset, lock)) continue;
      found_at_ = at + offset;
      return true;
    }
  }
  return false;
}

bool LockCopies::has_same_pointer(const image::Image& child, const image::Image& parent, std::uint64_t lock) {
  if (!child.memory || !parent.memory || lock == 0) return false;
  return is_same_object(*child.memory, *parent.memory, found_at_, lock) ||
         std::ranges::any_of(child.mappings, [&](const proc::Mapping& mapping) {
           return may_have_objects(mapping) && search(mapping, *child.memory, *parent.memory, lock);
         });
}

}  // namespace forksight::inspect
