#include "collect/record_size.hpp"

#include <cstring>

#include "forksight/trace/records.hpp"

namespace forksight::collect {

// The sum cannot overflow 64 bits: each tail adds the product of a 32-bit count and a small size.
std::uint64_t bytes_needed(trace::RecordType type, std::span<const std::byte> payload) {
  const trace::RecordTerms* const terms = trace::find_terms(type);
  if (terms == nullptr) return 0;
  std::uint64_t needed = terms->fixed_bytes;
  if (payload.size() < needed) return needed;
  for (const trace::TailTerms& tail : trace::kTails) {
    if (tail.type != type) continue;
    std::uint32_t count = 0;
    std::memcpy(&count, payload.data() + tail.count_offset, sizeof count);
    needed += std::uint64_t{count} * tail.element_bytes;
  }
  return needed;
}

}  // namespace forksight::collect
