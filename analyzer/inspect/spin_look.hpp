// Examines running threads more closely, to distinguish spinning from work.
#pragma once

#include <cstdint>
#include <span>

#include "image/image.hpp"

namespace forksight::inspect {

struct Spinner {
  std::int32_t tid = 0;
  std::uint64_t word = 0;  // the lock for which the thread seems to spin; 0: none
};

// True if one of the threads seems to spin for ever. Each thread is stopped for a moment a dozen times. Each time the
// thread must be in the same few instructions of the same call, and the word of its lock must not have changed. Threads
// that merely compete for a lock often look like spinning threads. So every thread of the process that is ready to run
// must have got processor time during the looks. If the lock is known, every such thread must also wait for this lock.
// The looks take a third of a second, or up to six seconds on a busy machine. False if a thread cannot be stopped.
bool any_stays_in_place(const image::Image& image, std::span<const Spinner> spinners);

}  // namespace forksight::inspect
