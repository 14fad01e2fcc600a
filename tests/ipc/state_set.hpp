// The set of the states that an exploration has reached. Each state is represented by a 64-bit hash.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace forksight::ipc::test {

inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccd;
  return a ^ (a >> 32);
}

class state_set {
 public:
  state_set() : cells_(1u << 16) {}
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return cells_.size() * sizeof(std::uint64_t); }
  // Returns all hashes, sorted.
  std::vector<std::uint64_t> all() const {
    std::vector<std::uint64_t> found;
    for (const std::uint64_t hash : cells_) {
      if (hash != 0) found.push_back(hash);
    }
    std::ranges::sort(found);
    return found;
  }
  bool insert(std::uint64_t hash) {
    if (size_ * 4 > cells_.size() * 3) grow();
    return put(hash == 0 ? 1 : hash);
  }

 private:
  bool put(std::uint64_t hash) {
    for (std::size_t i = hash & (cells_.size() - 1);; i = (i + 1) & (cells_.size() - 1)) {
      if (cells_[i] == hash) return false;
      if (cells_[i] != 0) continue;
      cells_[i] = hash;
      ++size_;
      return true;
    }
  }
  void grow() {
    std::vector<std::uint64_t> before(cells_.size() * 2);
    before.swap(cells_);
    size_ = 0;
    for (const std::uint64_t hash : before) {
      if (hash != 0) put(hash);
    }
  }
  std::vector<std::uint64_t> cells_;
  std::size_t size_ = 0;
};

}  // namespace forksight::ipc::test
