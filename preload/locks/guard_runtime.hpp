// The C++ runtimes of this process, as far as they initialise static variables of functions. The shim is preloaded
// into programs that have none, one, or several: libstdc++ may come with a library that is opened RTLD_LOCAL, libc++
// may stand beside it, and they lay out their guard variables differently.
#pragma once

#include <cstdint>

namespace forksight {

struct GuardRuntime {
  int (*acquire)(std::uint64_t* guard);
  void (*release)(std::uint64_t* guard);
  void (*abandon)(std::uint64_t* guard);
};

// What __cxa_guard_* of `caller` would have been bound to without the shim. Traps where there is nothing: then the
// loader would have refused the caller.
GuardRuntime guard_runtime_of(std::uint64_t caller);

// Objects have gone: what is remembered about callers may be wrong.
void forget_guard_callers(bool some_are_gone);

}  // namespace forksight
