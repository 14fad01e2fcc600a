// The part of the trace format about the ends of children.
#pragma once

#include <cstdint>

namespace forksight::trace {

// A child crashed: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS or SIGABRT ended it. Its parent, which has waited
// for it, wrote the record.
struct ChildEndRecord {
  std::int32_t child;   // pid
  std::int32_t status;  // status of wait(2)
};
static_assert(sizeof(ChildEndRecord) == 8);

}  // namespace forksight::trace
