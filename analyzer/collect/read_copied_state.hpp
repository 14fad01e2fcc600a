// Reads the records about timers and file locks. A timer record describes a timer that was armed when its process
// forked. The child does not have this timer. A file lock record says that a child released a file lock of its parent,
// or tried to release it. Or it says that a process unlocks a file lock that it had already lost.
#pragma once

#include "collect/trace_context.hpp"

namespace forksight::collect {

void read_timer(TraceContext& trace, const TraceRecord& record);
void read_file_lock(TraceContext& trace, const TraceRecord& record);

}  // namespace forksight::collect
