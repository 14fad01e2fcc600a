#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

inline constexpr std::size_t kTracePathBytes = 1280;

// OUT/HOST.PID.TIME.fstrace: unique over the ranks of a job that share one folder. One thread at a time.
void compose_trace_path(char (&path)[kTracePathBytes]);
// Who writes the trace, and how the shim is set. The magic number comes last. One thread at a time.
void fill_trace_header(trace::TraceHeader& head, std::uint64_t allocated, std::uint64_t first_free);

}  // namespace forksight
