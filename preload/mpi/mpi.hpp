// MPI and UCX: records the calls that a forked child makes although its parent had initialised the library. The shim
// needs no header or library of MPI or UCX: it finds the functions by name in whatever library exports them. At a fork
// the shim asks the library itself whether MPI is initialised.
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

inline constexpr std::uint32_t kMpiWrappers = 4;  // for each entry

// The functions behind the wrappers. A process may have several copies of MPI, and each caller is bound to one of them.
extern WatchedFunction g_mpi_reals[kMpiEntries][kMpiWrappers];
// True if this process has called one of the functions: then its forks are recorded.
extern std::atomic<bool> g_mpi_is_used;
// True if this process was forked from one that had initialised MPI or UCX, and had not finalised it.
extern bool g_watch_mpi;

bool is_mpi_name(const char* name);
// The function to call instead of `function`, which has this name: a wrapper, or `function` itself if the shim does not
// watch it.
std::uint64_t wrap_mpi(const char* name, std::uint64_t function);
// The address of a wrapper. Defined in hooks_mpi.cpp.
std::uint64_t mpi_wrapper(MpiEntry entry, std::uint32_t wrapper);
// Notes that this process uses MPI or UCX, so that its forks are recorded. Called at the first call of one of the
// functions in a process, and at some later calls. `function` is the address of the function that was called.
void note_mpi_use(MpiEntry entry, std::uint64_t function);

// Counts the UCX contexts. Called when a context was made (1), or released (-1).
void note_ucx(std::int32_t change);

// Called in a child for which g_watch_mpi is true. Writes the record of a call of `entry`, and returns a reference to
// the record. Returns 0 if the child has called `entry` before.
std::uint64_t touch_mpi(MpiEntry entry, std::uint64_t function, const Site& site);

// Remembers the library if it is an MPI, so that the shim asks it at a fork. Called by the library events
// (loader/library_events.hpp).
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
