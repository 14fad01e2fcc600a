// Reads the records about output that was still in a buffer of stdio at a fork. Other records say which processes wrote
// that output later.
#pragma once

#include "collect/trace_context.hpp"

namespace forksight::collect {

void read_unflushed(TraceContext& trace, const TraceRecord& record);
void read_flush(TraceContext& trace, const TraceRecord& record);

}  // namespace forksight::collect
