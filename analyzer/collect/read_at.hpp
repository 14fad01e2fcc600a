// Reads a value at an offset in the bytes of a trace. The offset need not be aligned.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace forksight::collect {

// The caller has checked that the value lies within `bytes`.
template <class T>
T read_at(std::span<const std::byte> bytes, std::size_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace forksight::collect
