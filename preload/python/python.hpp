// The Python stacks of a CPython process, in the format of the interpreter's own traceback dumper, which faulthandler
// uses. CPython 3.13 and later does not export the dumper, so the shim reads the stacks itself (own_frames.hpp). The
// dumper allocates nothing, takes no lock and only reads. It must not read a thread state that another thread frees at
// the same time. So the stacks of all threads are recorded only in three cases: by a thread that holds the GIL, in a
// forked child before anything runs there, or in a process that `forksight run` has proven dead.
#pragma once

#include <cstdint>

#include "loader/modules.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// Remembers the interpreter, if `module` is an interpreter that exports its dumper or describes its layout. The library
// events (loader/library_events.hpp) call this function and forget_python().
void recognise_python(const Module& module);
void forget_python(const Module& module);

// Called when a touch was recorded and has not blocked yet, and when the use of a share was recorded. Records the
// Python stack of the calling thread. async-signal-safe.
void record_python_at_touch(std::uint64_t touch);

namespace at_fork {
struct Python {
  static void records(const Fork& fork);
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
