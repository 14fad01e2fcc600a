// A trace as its writer left it: every record with its fields, for maintainers and bug reports. Errors are reported at
// their place, and the dump goes on after them.
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
  std::uint64_t unfinished = 0;  // those of `records` that were begun and not committed
  std::uint64_t bad = 0;         // places where no record could be read
};

// Passes the text on in pieces. nullopt: `write` returned false, and the dump stopped there.
std::optional<Totals> dump_trace(const collect::TraceFile& file, Format format,
                                 const std::function<bool(std::string_view)>& write);

}  // namespace forksight::dump
