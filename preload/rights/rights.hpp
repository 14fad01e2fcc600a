#pragma once

#include "guest/confinement.hpp"

namespace forksight {

// A seccomp filter that the program is about to install.
struct Filter {
  bool confines;   // it applies to this process, and not to a child of vfork()
  bool is_strict;  // the time stamp counter is forbidden, too
  CallSet refused;
};
// Creates the trace file while that is allowed, and reads the filter. `mode`: argument of prctl(PR_SET_SECCOMP). A
// filter that cannot be read counts as one that allows only read() and write().
Filter read_new_filter(unsigned long mode, const void* program);
void filter_was_installed(const Filter& filter);

}  // namespace forksight
