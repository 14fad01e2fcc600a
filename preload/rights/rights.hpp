#pragma once

#include "guest/confinement.hpp"

namespace forksight {

// A seccomp filter that the program is about to install.
struct Filter {
  bool confines;    // false: a child of vfork() installs the filter, so the filter does not confine its parent
  bool is_strict;   // strict mode, which also forbids the time stamp counter
  CallSet refused;  // the calls that the shim must not make under the filter
};
// Creates the trace file while that is allowed, and reads the filter. `mode`: argument of prctl(PR_SET_SECCOMP). A
// filter that cannot be read counts as one that allows only read() and write().
Filter read_new_filter(unsigned long mode, const void* program);
// Called when the program has installed the filter: the shim obeys it from now on.
void filter_was_installed(const Filter& filter);
// Called before the program calls prctl(PR_SET_TSC). `mode`: argument of that call. If that call forbids the time stamp
// counter, the shim no longer reads the clock.
void counter_is_about_to_change(unsigned long mode);

}  // namespace forksight
