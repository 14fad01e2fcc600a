#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

inline constexpr std::size_t kTracePathBytes = 1280;

// Makes the path OUT/HOST.PID.TIME.fstrace. The path is unique among the ranks of a job that share one folder. Only one
// thread at a time may call this function.
void compose_trace_path(char (&path)[kTracePathBytes]);
// Fills in which process writes the trace, and the shim's configuration. The magic number is stored last. Only one
// thread at a time may call this function.
void fill_trace_header(trace::TraceHeader& head, std::uint64_t allocated, std::uint64_t first_free);

}  // namespace forksight
