// The Python stacks of a CPython process, in the words of the interpreter's own traceback dumper: what faulthandler
// prints. The dumper allocates nothing, takes no lock and only reads; what it must not meet is a thread state that
// another thread frees meanwhile. So all threads are dumped only by a thread that holds the GIL, in a forked child
// before anything runs there, or in a process that was proven dead from outside.
#pragma once

#include <cstdint>

#include "loader/modules.hpp"

namespace forksight {

// Remembers the interpreter, if `module` is one that exports its dumper.
void recognise_python(const Module& module);
void forget_python(const Module& module);

// In prepare, after the fork's record: the stacks of all threads, unless there were too many forks lately.
void record_python_in_prepare(std::uint64_t fork);
// In the child that inherited orphans: the same from its frozen copy, where prepare had to leave it out.
void record_python_in_child(std::uint64_t fork);
// Before a touch blocks, or with the use of something shared: the stack of the calling thread. async-signal-safe.
void record_python_at_touch(std::uint64_t touch);

}  // namespace forksight
