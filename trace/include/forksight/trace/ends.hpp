// The part of the trace format about the ends of children.
#pragma once

#include <cstdint>

namespace forksight::trace {

// The process that wrote the record has waited for a child that crashed: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP,
// SIGSYS or SIGABRT ended the child.
struct ChildEndRecord {
  std::int32_t child;   // pid
  std::int32_t status;  // as wait(2) returns it
};
static_assert(sizeof(ChildEndRecord) == 8);

}  // namespace forksight::trace
