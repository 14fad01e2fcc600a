// The time. The shim does not call clock_gettime by its name, because sanitizers and preloaded libraries that fake the
// time interpose that function.
#pragma once

#include <time.h>

#include <cstdint>

#include "guest/sys.hpp"

namespace forksight {

// libc's own clock_gettime(), which asks the vdso; null until the shim's constructor has run.
using ReadClock = int (*)(clockid_t clock, timespec* now);
extern ReadClock g_read_clock;
// False in a process that may not read the time stamp counter (seccomp's strict mode, PR_SET_TSC). Such a process gets
// SIGSEGV if it reads the counter, as the vdso does. If the flag is false, now_ns() returns 0.
extern bool g_may_read_clock;

// async-signal-safe, fork-child-safe. The shim reads only CLOCK_MONOTONIC and CLOCK_REALTIME. The kernel always has
// these clocks, so the call does not fail. errno stays unchanged.
inline std::uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  if (__builtin_expect(!g_may_read_clock, 0)) return 0;
  timespec now{};
  if (g_read_clock != nullptr) {
    g_read_clock(clock, &now);
  } else {
    sys::call(SYS_clock_gettime, clock, sys::word(&now));
  }
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace forksight
