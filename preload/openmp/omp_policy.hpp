// What the shim does about libgomp's pools around a fork (--omp), and what it watches in the child. Only libgomp needs
// this: LLVM's and Intel's runtimes rebuild themselves in the child, and a pause would make them abort.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "openmp/runtimes.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// True in a child whose forking thread lost a libgomp pool. The hooks of regions read this flag first.
extern bool g_watch_regions;

struct RegionGuard {
  std::uint64_t touch;   // ref of the touch to end after the region; 0: none
  std::uint32_t clause;  // the num_threads to ask the runtime for
};
struct Region {
  OmpEntry entry;
  std::uint32_t clause;    // num_threads; 0: none
  std::uint32_t sections;  // number of sections of a sections construct, else 0
};
// Called when a region is about to start in a child for which g_watch_regions is true. Records a touch if the region
// needs the lost pool. Returns how many threads the hook must ask for.
RegionGuard enter_watched_region(Runtime& runtime, const Region& region, const Site& site);
void leave_watched_region(const RegionGuard& guard);
// For a region that one call begins and another one ends: keeps the guard between the two calls. The thread may wait
// for the team at either call.
void enter_split_region(const RegionGuard& guard);
void leave_split_region();

namespace at_fork {
struct OpenMp {
  static void enters(const Fork& fork);
  static void prepares(Fork& fork);
  static void starts(const Fork& fork);
  static void leaves(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
