// Reads what both sides of a fork share: open files, and the state of random number generators.
#pragma once

#include "collect/trace_context.hpp"

namespace forksight::collect {

void read_share(TraceContext& trace, const TraceRecord& record);
void read_share_use(TraceContext& trace, const TraceRecord& record);
void read_draw(TraceContext& trace, const TraceRecord& record);

}  // namespace forksight::collect
