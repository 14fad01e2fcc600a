// MPI and UCX: which calls a forked child makes although they were initialised before the fork. No header or library of
// theirs is needed: the functions are found by name in whatever library exports them, and whether MPI is initialised
// the library itself says at the fork.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/site.hpp"
#include "loader/modules.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

enum class MpiEntry : std::uint32_t {
#define FORKSIGHT_MPI_HOOK(name, words) name,
#include "mpi/mpi_hooks.def"
  kCount,
};
inline constexpr std::uint32_t kMpiEntries = static_cast<std::uint32_t>(MpiEntry::kCount);

// The functions behind the hooks; 0: not looked for yet, or nobody exports it.
extern std::atomic<std::uint64_t> g_mpi_reals[kMpiEntries];
// This process was forked from one that had initialised MPI or UCX, and had not finalised it.
extern bool g_watch_mpi;

bool is_mpi_name(const char* name);
// The next definition in the order of the loader's list; a process that calls it has its forks watched.
std::uint64_t find_exported_mpi(MpiEntry entry);

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
