// Which payload each record type must have. Unknown types, of writers newer than this reader, are whole by definition.
#pragma once

#include <cstddef>
#include <span>

#include "forksight/trace/format.hpp"

namespace forksight::collect {

// The fixed part and the tail that it announces are both there.
bool has_whole_payload(trace::RecordType type, std::span<const std::byte> payload);

}  // namespace forksight::collect
