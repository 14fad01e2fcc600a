// A closer look at threads that run: do they spin, or work.
#pragma once

#include <cstdint>
#include <span>

#include "image/image.hpp"

namespace forksight::inspect {

struct Spinner {
  std::int32_t tid = 0;
  std::uint64_t word = 0;  // of the lock that it seems to spin for; 0: none
};

// True if one of them, stopped for a moment a dozen times, is in the same few instructions of the same call each time,
// and its word has not changed meanwhile: two threads that fight for a lock are mostly in there, too. Every thread of
// the process that is ready to run must have had a turn in that time, and wait for the same word. Takes a third of a
// second, on a crowded machine up to three. False of what cannot be stopped.
bool any_stays_in_place(const image::Image& image, std::span<const Spinner> spinners);

}  // namespace forksight::inspect
