// Finds out whether the parent of a forked child has the same lock as the child. The child may have made its lock after
// the fork. Then the parent's memory at that address is something else, and says nothing about the lock.
#pragma once

#include <cstdint>

#include "image/image.hpp"

namespace forksight::inspect {

// Searches the objects of forked children for a pointer to a lock that their parents have at the same place.
class LockCopies {
 public:
  // True if `child` has a pointer to `lock` in its objects, and `parent` has the same pointer at the same address.
  // False also if too much memory would have to be searched.
  bool has_same_pointer(const image::Image& child, const image::Image& parent, std::uint64_t lock);

 private:
  bool search(const proc::Mapping& mapping, const image::Memory& child, const image::Memory& parent,
              std::uint64_t lock);

  std::uint64_t found_at_ = 0;  // the pointer that was found last: another child mostly has it at the same address
  std::uint64_t searched_ = 0;  // bytes
};

}  // namespace forksight::inspect
