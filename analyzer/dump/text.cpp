#include "dump/text.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace forksight::dump {

namespace {

constexpr std::size_t kWordsALine = 4;

std::string plain(const Json& value) {
  if (value.is_string() && !value.get_ref<const std::string&>().empty()) return value.get<std::string>();
  if (!value.is_array()) return value.is_string() ? "-" : value.dump();
  std::string joined;
  for (const Json& element : value) joined += (joined.empty() ? "" : ",") + plain(element);
  return joined.empty() ? "-" : joined;
}

std::string members(const Json& object) {
  std::string line;
  for (const auto& [name, value] : object.items())
    line += fmt::format("{}{}={}", line.empty() ? "" : " ", name, plain(value));
  return line;
}

std::string lines_of(const std::string& name, const std::string& text) {
  std::string lines = fmt::format("    {}:\n", name);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines += fmt::format("      | {}\n", text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string array_lines(const std::string& name, const Json& array) {
  std::string lines = fmt::format("    {}:\n", name);
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (array[i].is_object()) {
      lines += fmt::format("      [{}] {}\n", i, members(array[i]));
    } else {
      lines += i % kWordsALine == 0 ? fmt::format("{}      [{}]", i == 0 ? "" : "\n", i) : "";
      lines += ' ' + plain(array[i]);
    }
  }
  return array.empty() || array.back().is_object() ? lines : lines + '\n';
}

std::string field_lines(const std::string& name, const Json& value) {
  const bool has_lines = value.is_string() && value.get_ref<const std::string&>().find('\n') != std::string::npos;
  if (has_lines) return lines_of(name, value.get<std::string>());
  const bool is_long = value.is_array() && (value.size() > kWordsALine || (!value.empty() && value[0].is_object()));
  if (is_long) return array_lines(name, value);
  return fmt::format("    {}: {}\n", name, plain(value));
}

std::string time_of(std::uint64_t time_ns, std::uint64_t started_ns) {
  const auto difference = static_cast<std::int64_t>(time_ns - started_ns);
  return fmt::format("{:+.6f} s", static_cast<double>(difference) / 1e9);
}

}  // namespace

std::string text_of_line(const Json& line, std::uint64_t started_ns) {
  std::string text = fmt::format("{} {}", plain(line["offset"]), plain(line["record"]));
  if (line.contains("number")) text += fmt::format(" {}", plain(line["number"]));
  if (line.contains("pid")) text += fmt::format("  pid {}  tid {}", plain(line["pid"]), plain(line["tid"]));
  if (line.contains("time_ns")) text += "  " + time_of(line["time_ns"].get<std::uint64_t>(), started_ns);
  if (line.contains("bytes")) text += fmt::format("  {} bytes", plain(line["bytes"]));
  if (line.contains("says")) text += ": " + plain(line["says"]);
  text += '\n';
  if (line.contains("fields")) {
    for (const auto& [name, value] : line["fields"].items()) text += field_lines(name, value);
  }
  return text;
}

}  // namespace forksight::dump
