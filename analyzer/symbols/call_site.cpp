#include "symbols/call_site.hpp"

#include <cstring>

namespace forksight::symbols {
namespace {

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t at) { return std::to_integer<std::uint8_t>(bytes[at]); }

}  // namespace

std::size_t indirect_call_length(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  if (!bytes.empty() && (byte_at(bytes, 0) == 0x3e || byte_at(bytes, 0) == 0xf2)) ++at;  // notrack, bnd
  if (at < bytes.size() && (byte_at(bytes, at) & 0xf0U) == 0x40) ++at;                   // REX
  if (at + 2 > bytes.size() || byte_at(bytes, at) != 0xff) return 0;
  const std::uint8_t modrm = byte_at(bytes, at + 1);
  if (((modrm >> 3U) & 7U) != 2) return 0;
  const unsigned mode = modrm >> 6U;
  const unsigned rm = modrm & 7U;
  std::size_t length = at + 2;
  if (mode == 3) return length;
  const bool has_sib = rm == 4;
  if (has_sib) {
    if (length >= bytes.size()) return 0;
    const bool has_no_base = (byte_at(bytes, length) & 7U) == 5;
    ++length;
    if (mode == 0 && has_no_base) length += 4;
  }
  if (mode == 0 && rm == 5) length += 4;  // rip-relative
  if (mode == 1) length += 1;
  if (mode == 2) length += 4;
  return length;
}

std::optional<std::uint64_t> direct_call_target(const ElfModule& elf, std::uint64_t address) {
  if (address < 5) return std::nullopt;
  const auto bytes = elf.bytes_at(address - 5);
  if (bytes.size() < 5 || byte_at(bytes, 0) != 0xe8) return std::nullopt;
  std::int32_t distance = 0;
  std::memcpy(&distance, bytes.data() + 1, sizeof distance);
  const std::uint64_t target = address + static_cast<std::uint64_t>(std::int64_t{distance});
  if (!elf.is_executable(target)) return std::nullopt;
  return target;
}

bool is_after_call(const ElfModule& elf, std::uint64_t address) {
  if (address == 0 || !elf.is_executable(address - 1)) return false;
  if (direct_call_target(elf, address)) return true;
  for (std::uint64_t length = 2; length <= 9 && length <= address; ++length) {
    const auto bytes = elf.bytes_at(address - length);
    if (bytes.size() < length) continue;
    if (indirect_call_length(bytes.first(length)) == length) return true;
  }
  return false;
}

}  // namespace forksight::symbols
