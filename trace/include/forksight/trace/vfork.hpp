// Calls that a child of vfork() made and must not make. Part of the trace format: see format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

enum class VforkCall : std::uint32_t { kExit = 1 };

// A child of vfork() called a function in its parent's memory. Written by the parent, when it went on; the first only.
struct VforkCallRecord {
  std::uint64_t stack;  // ref to kStack of the caller, in the child
  std::int32_t child;   // pid
  VforkCall call;
};
static_assert(sizeof(VforkCallRecord) == 16);

}  // namespace forksight::trace
