// The bytes of another process, alive or in a core file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace forksight::image {

class Memory {
 public:
  virtual ~Memory() = default;

  // Fills `bytes` from `address` on. Returns the number of bytes before the first one that cannot be read. Never
  // throws.
  virtual std::size_t read(std::uint64_t address, std::span<std::byte> bytes) const = 0;

  // Reads a value of a plain type; nullopt if not all of it can be read.
  template <class T>
  std::optional<T> value(std::uint64_t address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::byte raw[sizeof(T)];
    if (read(address, raw) != sizeof(T)) return std::nullopt;
    T result;
    std::memcpy(&result, raw, sizeof(T));
    return result;
  }

  // Reads at most `limit` bytes, and returns as many as can be read.
  std::vector<std::byte> bytes(std::uint64_t address, std::size_t limit) const {
    std::vector<std::byte> result(limit);
    result.resize(read(address, result));
    return result;
  }
};

}  // namespace forksight::image
