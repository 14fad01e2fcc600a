// The payload that each record type must have, from records.def. Records of unknown types, from newer writers, count as
// complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "forksight/trace/format.hpp"

namespace forksight::collect {

// The size of the fixed part and, if that is there, of the tails that it announces.
std::uint64_t bytes_needed(trace::RecordType type, std::span<const std::byte> payload);

inline bool has_whole_payload(trace::RecordType type, std::span<const std::byte> payload) {
  return payload.size() >= bytes_needed(type, payload);
}

}  // namespace forksight::collect
