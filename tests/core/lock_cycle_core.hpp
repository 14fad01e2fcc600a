// A core of a process with two threads that wait for each other's mutex.
#pragma once

#include <cstddef>
#include <vector>

#include "support/core_writer.hpp"

namespace forksight::test {

struct LockCycleCore {
  std::vector<std::byte> core;
  // The offsets in the core at which forksight reads: those of the mutexes, and of pointers to the structs of the
  // threads.
  std::vector<std::size_t> places;
};

// Makes the process, writes the core, and ends the process.
LockCycleCore make_lock_cycle_core(const CoreScene& scene = {});

}  // namespace forksight::test
