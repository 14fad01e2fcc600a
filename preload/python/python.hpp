// The Python stacks of a CPython process, in the format of the interpreter's own traceback dumper, which faulthandler
// uses. CPython 3.13 and later does not export the dumper, so its own description of its layout is used
// (own_frames.hpp). The dumper allocates nothing, takes no lock and only reads. It must not meet a thread state that
// another thread frees at the same time. So all threads are dumped only by a thread that holds the GIL, in a forked
// child before anything runs there, or in a process that was proven dead from outside.
#pragma once

#include <cstdint>

#include "loader/modules.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// Remembers the interpreter, if `module` is one that exports its dumper or describes its layout.
void recognise_python(const Module& module);
void forget_python(const Module& module);

// Called before a touch blocks, and when something shared is used: records the stack of the calling thread.
// async-signal-safe.
void record_python_at_touch(std::uint64_t touch);

namespace at_fork {
struct Python {
  static void records(const Fork& fork);
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
