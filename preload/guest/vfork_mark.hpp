// Whether the calling code runs in a child of vfork(). Such a child runs in its parent's memory, on the stack and with
// the TLS of the calling thread. The hook of vfork sets a mark in the TLS while the child exists.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "guest/sys.hpp"

namespace forksight {

// The pid of the vfork() child that this thread waits for. The child itself stores its pid here. 0: none.
extern thread_local constinit std::int32_t t_vfork_child asm("forksight_t_vfork_child");

// True in a child of vfork(). False in a process that such a child forked: that process has a copy of the mark, but
// another pid.
inline bool is_vfork_child() { return FORKSIGHT_UNLIKELY(t_vfork_child != 0) && t_vfork_child == sys::getpid(); }

}  // namespace forksight
