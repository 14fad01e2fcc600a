// The part of the trace format about the ends of children.
#pragma once

#include <cstdint>

namespace forksight::trace {

// The writer has waited for a child that a crash ended, by SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS or SIGABRT.
struct ChildEndRecord {
  std::int32_t child;   // pid
  std::int32_t status;  // as of wait(2)
};
static_assert(sizeof(ChildEndRecord) == 8);

}  // namespace forksight::trace
