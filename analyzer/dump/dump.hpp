// Shows a trace as its writer left it, for maintainers and bug reports: every record with its fields. An error is
// reported where it occurs, and the dump goes on behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "collect/trace_file.hpp"

namespace forksight::dump {

enum class Format { kText, kJsonLines };

struct Totals {
  std::uint64_t records = 0;     // all except the bad ones
  std::uint64_t unfinished = 0;  // those of `records` that were begun but not committed
  std::uint64_t bad = 0;         // places where no record could be read
};

// Dumps the trace, and passes the text to `write` in pieces. nullopt: `write` returned false, and the dump stopped
// there.
std::optional<Totals> dump_trace(const collect::TraceFile& file, Format format,
                                 const std::function<bool(std::string_view)>& write);

}  // namespace forksight::dump
