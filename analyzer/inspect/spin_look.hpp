// A closer look at running threads, to distinguish spinning from work.
#pragma once

#include <cstdint>
#include <span>

#include "image/image.hpp"

namespace forksight::inspect {

struct Spinner {
  std::int32_t tid = 0;
  std::uint64_t word = 0;  // the lock that it seems to spin for; 0: none
};

// True if one of the threads is found in the same few instructions of the same call, each of a dozen times that it is
// stopped for a moment, and its word does not change in that time. Two threads that compete for a lock are mostly in
// there, too. So every thread of the process that is ready to run must have had a turn in that time, and must wait for
// the same word. Takes a third of a second, up to three seconds on a crowded machine. False if a thread cannot be
// stopped.
bool any_stays_in_place(const image::Image& image, std::span<const Spinner> spinners);

}  // namespace forksight::inspect
