// What a seccomp filter would do, read from the filter's program. async-signal-safe.
#pragma once

#include "guest/confinement.hpp"

namespace forksight {

// Adds to `refused` the calls of the shim for which the filter may do harm: kill, send a signal, or ask another process
// by SECCOMP_RET_USER_NOTIF. The filter's decision may depend on arguments, which are not known: then the call counts
// as refused. `program` is the sock_fprog that the watched program passes to the kernel. False if it cannot be read, or
// if another thread is reading a filter.
bool read_filter(const void* program, CallSet& refused);
// The calls that strict mode refuses.
CallSet refused_in_strict_mode();

}  // namespace forksight
