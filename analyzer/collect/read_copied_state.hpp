// Reads which timers and file locks a process had when it forked, and how forked processes act as if they had these,
// too.
#pragma once

#include "collect/trace_context.hpp"

namespace forksight::collect {

void read_timer(TraceContext& trace, const TraceRecord& record);
void read_file_lock(TraceContext& trace, const TraceRecord& record);

}  // namespace forksight::collect
