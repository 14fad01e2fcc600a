// What a seccomp filter would do, read from the filter's program. async-signal-safe.
#pragma once

#include "guest/confinement.hpp"

namespace forksight {

// The calls of the shim for which the filter may do harm: kill, send a signal, or ask another process. Arguments are
// not known, so a filter that kills for some arguments counts. `program`: a sock_fprog of the program. False if it
// cannot be read, or if another thread is reading one.
bool read_filter(const void* program, CallSet& refused);
// The calls that strict mode refuses.
CallSet refused_in_strict_mode();

}  // namespace forksight
