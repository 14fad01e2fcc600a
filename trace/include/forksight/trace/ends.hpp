// The part of the trace format about the ends of children.
#pragma once

#include <cstdint>

namespace forksight::trace {

// A child crashed: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS or SIGABRT ended it. The parent writes this record
// when it has waited for the child.
struct ChildEndRecord {
  std::int32_t child;   // pid
  std::int32_t status;  // status of wait(2)
};
static_assert(sizeof(ChildEndRecord) == 8);

}  // namespace forksight::trace
