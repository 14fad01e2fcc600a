// The functions of C++ runtimes that initialise static variables of functions. A program may have no C++ runtime, one,
// or several: libstdc++ may come with a library that is opened RTLD_LOCAL, and libc++ may be loaded beside it. The
// guard variables of libstdc++ and libc++ have different layouts.
#pragma once

#include <cstdint>

namespace forksight {

struct GuardRuntime {
  int (*acquire)(std::uint64_t* guard);
  void (*release)(std::uint64_t* guard);
  void (*abandon)(std::uint64_t* guard);
};

// The functions __cxa_guard_* to which `caller` would have been bound without the shim. Traps if there are none. This
// cannot happen, because the loader would have refused to load the caller.
GuardRuntime guard_runtime_of(std::uint64_t caller);

// Called when objects were loaded or unloaded. If some objects are gone, all entries about callers are removed, because
// they may be wrong.
void forget_guard_callers(bool some_are_gone);

}  // namespace forksight
