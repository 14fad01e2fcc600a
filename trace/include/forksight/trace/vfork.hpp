// Calls that a child of vfork() made and must not make. Part of the trace format: see format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

enum class VforkCall : std::uint32_t { kExit = 1 };

// A child of vfork() called a function that it must not call. The parent writes this record when it continues after
// vfork(). Only the first such call of a process is recorded.
struct VforkCallRecord {
  std::uint64_t stack;  // ref to kStack of the caller, in the child
  std::int32_t child;   // pid
  VforkCall call;
};
static_assert(sizeof(VforkCallRecord) == 16);

}  // namespace forksight::trace
