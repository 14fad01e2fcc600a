// CRC32C: the Castagnoli polynomial 0x1EDC6F41, reflected, as in RFC 3720 section 12.1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forksight::ipc::detail {

inline std::uint32_t crc32c(const void* data, std::size_t bytes) {
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < bytes; ++i) {
    crc ^= static_cast<const unsigned char*>(data)[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
  }
  return ~crc;
}

}  // namespace forksight::ipc::detail
