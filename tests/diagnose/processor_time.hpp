// The processor time that the calling thread has used.
#pragma once

#include <ctime>

namespace forksight::test {

// Returns seconds.
inline double processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace forksight::test
