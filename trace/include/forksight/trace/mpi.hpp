// The record of MPI and UCX. Part of the trace format: see format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

enum class MpiKind : std::uint32_t { kMpi = 1, kUcx = 2 };

enum MpiFlag : std::uint32_t {
  kMpiLost = 1U << 0U,  // an ancestor of the forking process initialised the library before an earlier fork
};

// MPI or UCX was initialised, and not finalised, when its process forked. The forking thread writes such a record after
// its kFork for each copy of MPI, and one for UCX.
struct MpiRecord {
  std::uint64_t fork;         // ref to kFork
  std::uint64_t module_bias;  // ModuleRecord::bias of the library, 0: not known
  MpiKind kind;
  std::uint32_t flags;  // MpiFlag
};
static_assert(sizeof(MpiRecord) == 24);

}  // namespace forksight::trace
