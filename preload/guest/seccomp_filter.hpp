// What a seccomp filter would do, read from its program. async-signal-safe.
#pragma once

#include "guest/confinement.hpp"

namespace forksight {

// The calls of the shim for which the filter may do harm: kill, or send a signal, or ask another process. Arguments are
// not known, so a filter that kills for some of them counts. `program`: a sock_fprog of the program's. False if it
// cannot be read, or another thread is at one.
bool read_filter(const void* program, CallSet& refused);
// What remains in strict mode.
CallSet refused_in_strict_mode();

}  // namespace forksight
