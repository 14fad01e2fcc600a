// Measures what a look costs. The caller schedules its next look so that looks take a fixed share of the time. The cost
// is processor time, because on a busy machine the wall clock also counts the time of other processes.
#pragma once

#include <chrono>
#include <ctime>

namespace forksight::watch {

class Cost {
 public:
  // Processor time of this thread since the object was made.
  std::chrono::nanoseconds used() const { return processor_time() - start_; }

 private:
  static std::chrono::nanoseconds processor_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  std::chrono::nanoseconds start_ = processor_time();
};

}  // namespace forksight::watch
