// Output that streams of stdio had not written at a fork.
#pragma once

#include "collect/trace_context.hpp"

namespace forksight::collect {

void read_unflushed(TraceContext& trace, const TraceRecord& record);
void read_flush(TraceContext& trace, const TraceRecord& record);

}  // namespace forksight::collect
