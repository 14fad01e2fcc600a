// The threads of a process at a fork: which live, which end during the prepare handlers, and which the child loses.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// True if this process has, or had, a second thread. With --cure=self-held, also true if its only thread holds locks.
bool fork_is_watched();

// The number of threads other than that of `self`.
std::uint32_t count_other_threads(const Slot* self);
// Fills the tail of a fork's record. Returns how many entries it has filled, which may be fewer than `room`: a thread
// may have ended since the count.
std::uint32_t fill_threads(trace::ForkThread* out, std::uint32_t room, const Slot* self);

namespace at_fork {
struct Threads {
  static bool tells();
  static void enters(const Fork& fork);
  static void prepares(Fork& fork);
  static void records(const Fork& fork);
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
