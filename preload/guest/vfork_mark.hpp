// Whether this code runs in a child of vfork(). Such a child runs in its parent's memory, on its thread's stack and
// with its TLS. The hook of vfork sets a mark there while the child exists.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "guest/sys.hpp"

namespace forksight {

// The pid of the child that this thread is suspended for, set by the child itself; 0: none.
extern thread_local constinit std::int32_t t_vfork_child asm("forksight_t_vfork_child");

// A fork in such a child copies the mark, but is another process.
inline bool is_vfork_child() { return FORKSIGHT_UNLIKELY(t_vfork_child != 0) && t_vfork_child == sys::getpid(); }

}  // namespace forksight
