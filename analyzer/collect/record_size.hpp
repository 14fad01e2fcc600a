// Computes the size that the payload of each record type must have. records.def defines the types. A record of an
// unknown type comes from a newer writer, and counts as complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "forksight/trace/format.hpp"

namespace forksight::collect {

// Returns the size of the fixed part in bytes. If `payload` contains the whole fixed part, adds the size of the tails
// that the fixed part announces.
std::uint64_t bytes_needed(trace::RecordType type, std::span<const std::byte> payload);

inline bool has_whole_payload(trace::RecordType type, std::span<const std::byte> payload) {
  return payload.size() >= bytes_needed(type, payload);
}

}  // namespace forksight::collect
