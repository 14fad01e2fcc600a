// The threads of a process at a fork: who lives, who goes during the prepare handlers, who is lost to the child.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// Has this process, or had it, a second thread? Or may its one thread lose its own locks?
bool fork_is_watched();

// Threads other than that of `self`.
std::uint32_t count_other_threads(const Slot* self);
// The tail of a fork's record. Returns how many were filled in: a thread may have come or gone since they were counted.
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
