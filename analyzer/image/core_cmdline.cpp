#include "image/core_cmdline.hpp"

#include <algorithm>
#include <cstring>

namespace forksight::image {
namespace {

constexpr std::uint64_t kMaxSearched = 4U << 20U;      // arguments and environment are seldom larger than this
constexpr std::size_t kMaxArgumentBytes = 16U << 10U;  // the same limit as for a live process
// the first bytes of the auxiliary vector suffice to recognise the vector
constexpr std::size_t kKeyBytes = 64;

}  // namespace

std::vector<std::string> find_arguments(const Memory& memory, std::uint64_t start, std::uint64_t end,
                                        std::span<const std::byte> auxiliary) {
  if (auxiliary.size() < kKeyBytes || end <= start) return {};
  start = std::max(start, end - std::min(end, kMaxSearched)) & ~std::uint64_t{7};
  const std::vector<std::byte> top = memory.bytes(start, end - start);
  const auto word = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, top.data() + at, sizeof value);
    return value;
  };
  // Takes the last match. The frames of calls lie at lower addresses than the vector, and may contain copies of it.
  const auto key = auxiliary.first(kKeyBytes);
  const auto found = std::find_end(top.begin(), top.end(), key.begin(), key.end());
  if (found == top.end()) return {};

  // The following lie below the vector, from high to low addresses: a null, the environment's pointers, a null, the
  // arguments' pointers, and the number of arguments.
  std::size_t at = static_cast<std::size_t>(found - top.begin());
  if (at % 8 != 0 || at < 8 || word(at - 8) != 0) return {};
  at -= 8;
  do {
    if (at < 8) return {};
    at -= 8;
  } while (word(at) != 0);
  const std::size_t pointers_end = at;
  for (std::uint64_t count = 0;; ++count) {
    if (at < 8) return {};
    at -= 8;
    if (word(at) == count) break;
  }
  std::vector<std::string> arguments;
  std::size_t bytes = 0;
  for (at += 8; at < pointers_end && bytes < kMaxArgumentBytes; at += 8) {
    const std::uint64_t address = word(at);
    if (address < start || address - start >= top.size()) return {};
    const std::size_t offset = address - start;
    const char* text = reinterpret_cast<const char*>(top.data()) + offset;
    arguments.emplace_back(text, strnlen(text, std::min(top.size() - offset, kMaxArgumentBytes)));
    bytes += arguments.back().size() + 1;
  }
  return arguments;
}

}  // namespace forksight::image
