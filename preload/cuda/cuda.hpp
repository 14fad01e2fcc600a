// Records how a process and its forked children use the CUDA driver. Three facts are recorded: which thread initialised
// the driver, what the driver says about itself at a fork, and which calls a forked child makes. If the parent had
// initialised the driver, the driver refuses all calls of the child. The shim needs no CUDA header or library. It finds
// the functions by name in any library that exports them.
//   A program reaches the driver by symbol, by dlsym, or by cuGetProcAddress. A library between the program and the
//   driver may export the same names as the driver. So each name has several wrappers, one for each function that has
//   the name. With only one wrapper for a name, the wrapper would pass a call of the intermediate library to
//   that same library.
#pragma once

#include <atomic>
#include <cstdint>

#include "forksight/trace/cuda.hpp"
#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "loader/modules.hpp"
#include "loader/watched_function.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

enum class CudaEntry : std::uint32_t {
#define FORKSIGHT_CUDA_HOOK(name, words) name,
#include "cuda/cuda_hooks.def"
  kCount,
};
inline constexpr std::uint32_t kCudaEntries = static_cast<std::uint32_t>(CudaEntry::kCount);
inline constexpr std::uint32_t kCudaWrappers = 4;  // for each entry

// The functions behind the wrappers, and how the program obtained each.
extern WatchedFunction g_cuda_reals[kCudaEntries][kCudaWrappers];
extern std::atomic<trace::CudaWay> g_cuda_ways[kCudaEntries][kCudaWrappers];

// True if this process was forked from one that had initialised the driver.
extern bool g_watch_cuda;

// What a look-up of the driver's function `name` returns: a wrapper, or `function` itself if the shim does not watch
// it.
std::uint64_t wrap_cuda(const char* name, std::uint64_t function, trace::CudaWay way);
bool is_cuda_name(const char* name);
// The address of a wrapper. Defined in hooks_cuda.cpp.
std::uint64_t cuda_wrapper(CudaEntry entry, std::uint32_t wrapper);

// Called when cuInit has returned 0. Keeps the facts about the first such call, and the stack of this call.
void note_cuda_init(trace::CudaWay way, const Site& site);
// Called when the program may have made a primary context. So the next fork asks the driver again which contexts exist.
void note_cuda_context();

// Called in a child for which g_watch_cuda is true. Begins the record of a call of `entry`, and returns a reference to
// the record. Returns 0 if the child has called `entry` before.
std::uint64_t touch_cuda(CudaEntry entry, std::uint64_t function, const Site& site);

// Remembers the library if it is the driver. Called by the library events (loader/library_events.hpp).
void recognise_cuda(const Module& module);
void forget_cuda(const Module& module);

namespace at_fork {
struct Cuda {
  static void enters(const Fork& fork);
  static void records(const Fork& fork);
  static void starts(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
