// MPI and UCX: which calls a forked child makes although they were initialised before the fork. No header or library of
// theirs is needed: the functions are found by name in whatever library exports them, and whether MPI is initialised
// the library itself says at the fork.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/site.hpp"
#include "loader/modules.hpp"
#include "loader/watched_function.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

enum class MpiEntry : std::uint32_t {
#define FORKSIGHT_MPI_HOOK(name, words) name,
#include "mpi/mpi_hooks.def"
  kCount,
};
inline constexpr std::uint32_t kMpiEntries = static_cast<std::uint32_t>(MpiEntry::kCount);

inline constexpr std::uint32_t kMpiWrappers = 4;  // of each entry

// The functions behind the wrappers. A process may have several copies of MPI, and each caller is bound to one of them.
extern WatchedFunction g_mpi_reals[kMpiEntries][kMpiWrappers];
// This process has called one of them: its forks are watched.
extern std::atomic<bool> g_mpi_is_used;
// This process was forked from one that had initialised MPI or UCX, and had not finalised it.
extern bool g_watch_mpi;

bool is_mpi_name(const char* name);
// What to call instead of `function` of that name: a wrapper, or itself where all wrappers stand for others.
std::uint64_t wrap_mpi(const char* name, std::uint64_t function);
// The address of a wrapper. In hooks_mpi.cpp.
std::uint64_t mpi_wrapper(MpiEntry entry, std::uint32_t wrapper);
// The first call. `function` is one of UCX's or of MPI's.
void note_mpi_use(MpiEntry entry, std::uint64_t function);

// A context of UCX was made (1), or given back (-1).
void note_ucx(std::int32_t change);

// In a watched child: the record of this call, 0 for none (the function was recorded already).
std::uint64_t touch_mpi(MpiEntry entry, std::uint64_t function, const Site& site);

// The table of modules has a new object, or has lost one.
void recognise_mpi(const Module& module);
void forget_mpi(const Module& module);

namespace at_fork {
struct Mpi {
  static void enters(const Fork& fork);
  static void records(const Fork& fork);
  static void starts(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
