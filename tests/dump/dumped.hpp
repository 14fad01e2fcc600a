// Dumps the bytes of a trace, as text or as JSON lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collect/trace_file.hpp"
#include "dump/dump.hpp"
#include "dump/fields.hpp"

namespace forksight::test {

struct Dumped {
  bool is_trace = false;
  dump::Totals totals;
  std::string text;
};

inline Dumped dumped(std::vector<std::byte> bytes, dump::Format format = dump::Format::kText) {
  Dumped result;
  const auto file = collect::TraceFile::parse("a.fstrace", std::move(bytes));
  if (!file) return result;
  result.is_trace = true;
  const auto totals = dump::dump_trace(file.value(), format, [&](std::string_view piece) {
    result.text += piece;
    return true;
  });
  result.totals = totals.value();
  return result;
}

inline std::vector<dump::Json> dumped_lines(std::vector<std::byte> bytes) {
  std::vector<dump::Json> lines;
  const std::string text = dumped(std::move(bytes), dump::Format::kJsonLines).text;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(dump::Json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

}  // namespace forksight::test
