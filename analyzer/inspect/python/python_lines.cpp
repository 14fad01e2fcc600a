#include "inspect/python/python_lines.hpp"

#include <limits>

#include "forksight/abi/python.hpp"

namespace forksight::inspect {
namespace {

using Table = std::span<const std::byte>;

int to_line(std::int64_t line) {
  return line < 1 || line > std::numeric_limits<int>::max() ? 0 : static_cast<int>(line);
}

std::uint8_t byte_at(Table table, std::size_t index) { return std::to_integer<std::uint8_t>(table[index]); }
std::int8_t signed_at(Table table, std::size_t index) { return static_cast<std::int8_t>(byte_at(table, index)); }

// co_lnotab consists of pairs of bytes. Each pair describes one place in the code. The first byte is the number of
// bytes of code between the place of the previous pair and this place. The second byte is signed: the line from this
// place on, minus the line before this place.
int find_in_deltas(Table table, std::int64_t line, std::int64_t address) {
  std::int64_t start = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    start += byte_at(table, i);
    if (start > address) break;
    line += signed_at(table, i + 1);
  }
  return to_line(line);
}

// co_linetable of 3.10 consists of pairs of bytes. The first byte is the number of bytes of code that belong to one
// line. The second byte is signed: this line minus the line before. If it is -128, these bytes of code have no line.
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

}  // namespace

int find_python_line(PythonLines kind, std::span<const std::byte> table, int first_line, std::int64_t address) {
  if (kind == PythonLines::kDeltas) return find_in_deltas(table, first_line, address);
  if (address < 0) return to_line(first_line);
  if (kind == PythonLines::kRanges) return find_in_ranges(table, first_line, address);
  const auto at = [&](std::size_t i) { return i < table.size() ? int{byte_at(table, i)} : -1; };
  return abi::find_python_location(at, first_line, address);
}

}  // namespace forksight::inspect
