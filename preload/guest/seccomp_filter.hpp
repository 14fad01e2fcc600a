// What a seccomp filter would do, read from the filter's program. async-signal-safe.
#pragma once

#include "guest/confinement.hpp"

namespace forksight {

// Adds to `refused` the calls of the shim for which the filter may do harm: kill, send a signal, or ask another process
// by SECCOMP_RET_USER_NOTIF. If the filter's decision depends on the arguments of a call, the call counts as refused,
// because the arguments are not known. `program` is the sock_fprog that the watched program passes to the kernel.
// Returns false if the program cannot be read, or if another thread is reading a filter.
bool read_filter(const void* program, CallSet& refused);
// The calls that strict mode refuses.
CallSet refused_in_strict_mode();

}  // namespace forksight
