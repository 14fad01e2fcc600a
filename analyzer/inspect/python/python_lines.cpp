#include "inspect/python/python_lines.hpp"

#include <limits>

namespace forksight::inspect {
namespace {

using Table = std::span<const std::byte>;

constexpr int kUnit = 2;  // bytes of an instruction

int to_line(std::int64_t line) {
  return line < 1 || line > std::numeric_limits<int>::max() ? 0 : static_cast<int>(line);
}

std::uint8_t byte_at(Table table, std::size_t index) { return std::to_integer<std::uint8_t>(table[index]); }
std::int8_t signed_at(Table table, std::size_t index) { return static_cast<std::int8_t>(byte_at(table, index)); }

// Pairs: so many bytes further on the line is so much higher.
int find_in_deltas(Table table, std::int64_t line, std::int64_t address) {
  std::int64_t start = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    start += byte_at(table, i);
    if (start > address) break;
    line += signed_at(table, i + 1);
  }
  return to_line(line);
}

// Pairs: the next so many bytes are of a line that is so much higher; -128: of none.
int find_in_ranges(Table table, std::int64_t line, std::int64_t address) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    end += byte_at(table, i);
    const std::int8_t delta = signed_at(table, i + 1);
    if (delta != -128) line += delta;
    if (address < end) return delta == -128 ? 0 : to_line(line);
  }
  return 0;
}

// A signed number in groups of six bits, the lowest first; bit 6: more follow. Its sign is in the lowest bit.
std::int64_t read_signed(Table table, std::size_t index) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; index < table.size() && shift < 36; shift += 6, ++index) {
    const std::uint8_t byte = byte_at(table, index);
    if ((byte & 0x80U) != 0) break;
    value |= static_cast<std::uint64_t>(byte & 0x3FU) << shift;
    if ((byte & 0x40U) == 0) break;
  }
  const auto size = static_cast<std::int64_t>(value >> 1U);
  return (value & 1U) != 0 ? -size : size;
}

// Entries of a head, which alone has bit 7, and more bytes. In the head: the form, and for how many instructions less
// one. Objects/locations.md.
int find_in_locations(Table table, std::int64_t line, std::int64_t address) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < table.size();) {
    const unsigned head = byte_at(table, i);
    const unsigned form = (head >> 3U) & 0xFU;
    end += (static_cast<std::int64_t>(head & 7U) + 1) * kUnit;
    if (form >= 10 && form <= 12) line += static_cast<int>(form) - 10;
    if (form == 13 || form == 14) line += read_signed(table, i + 1);
    if (address < end) return form == 15 ? 0 : to_line(line);
    do ++i;
    while (i < table.size() && (byte_at(table, i) & 0x80U) == 0);
  }
  return 0;
}

}  // namespace

int find_python_line(PythonLines kind, std::span<const std::byte> table, int first_line, std::int64_t address) {
  if (kind == PythonLines::kDeltas) return find_in_deltas(table, first_line, address);
  if (address < 0) return to_line(first_line);
  if (kind == PythonLines::kRanges) return find_in_ranges(table, first_line, address);
  return find_in_locations(table, first_line, address);
}

}  // namespace forksight::inspect
