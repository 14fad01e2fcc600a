#include "suite/expectation_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string_view>

namespace forksight::suite {
namespace {

constexpr std::string_view kBlanks = " \t\r\f\v";

std::string_view without_leading_blanks(std::string_view text) {
  const std::size_t start = text.find_first_not_of(kBlanks);
  return start == std::string_view::npos ? std::string_view() : text.substr(start);
}

bool take(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

std::optional<ExpectLine> parse_line(std::string_view text) {
  text = without_leading_blanks(text);
  if (!take(text, "//") && !take(text, "#")) return std::nullopt;
  text = without_leading_blanks(text);
  if (!take(text, "EXPECT")) return std::nullopt;
  ExpectLine line;
  if (text.starts_with('-')) {
    const std::size_t end = std::min(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1), text.size());
    if (end == 1) return std::nullopt;
    line.kind = text.substr(0, end);
    text.remove_prefix(end);
  }
  if (text.starts_with('(')) {
    const std::size_t end = text.find(')');
    if (end == std::string_view::npos) return std::nullopt;
    line.variant = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
  }
  if (text.empty()) return line;
  if (!take(text, ":")) return std::nullopt;
  line.text = without_leading_blanks(text);
  return line;
}

// Returns the name in a MARK comment at the end of the line; nullopt if the line has no such comment.
std::optional<std::string> parse_mark(std::string_view text) {
  constexpr std::string_view kMark = "MARK:";
  for (std::size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, at + 1)) {
    const std::size_t before = at == 0 ? std::string_view::npos : text.find_last_not_of(kBlanks, at - 1);
    const bool is_comment =
        before != std::string_view::npos && (text[before] == '#' || (before > 0 && text.substr(before - 1, 2) == "//"));
    std::string_view name = without_leading_blanks(text.substr(at + kMark.size()));
    const std::size_t end = name.find_last_not_of(kBlanks);
    name = end == std::string_view::npos ? std::string_view() : name.substr(0, end + 1);
    if (is_comment && !name.empty() && name.find_first_of(kBlanks) == std::string_view::npos) return std::string(name);
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::string>> read_lines(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return Error{fmt::format("{}: cannot be read", file.string())};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

std::vector<ExpectLine> find_expect_lines(const std::vector<std::string>& lines) {
  std::vector<ExpectLine> found;
  for (std::size_t index = 0; index < lines.size(); ++index) {
    if (auto line = parse_line(lines[index])) {
      line->number = static_cast<int>(index) + 1;
      found.push_back(std::move(*line));
    }
  }
  return found;
}

std::vector<ExpectLine> select_lines(const std::vector<ExpectLine>& lines, const std::string& variant) {
  const auto has_own = [&](std::set<std::string_view> kinds) {
    return std::ranges::any_of(
        lines, [&](const ExpectLine& line) { return kinds.contains(line.kind) && line.variant == variant; });
  };
  const bool own_findings = has_own({"", "-NONE"});
  const bool own_bare = has_own({"-BARE"});
  const bool own_why = has_own({"-WHY", "-UNKNOWN"});
  const bool own_core = has_own({"-CORE"});
  std::vector<ExpectLine> selected;
  for (const ExpectLine& line : lines) {
    bool own = own_findings;
    if (line.kind == "-CORE") own = own_core;
    if (line.kind == "-BARE") own = own_bare;
    if (line.kind == "-WHY" || line.kind == "-UNKNOWN") own = own_why;
    if (line.variant == (own ? variant : "")) selected.push_back(line);
  }
  return selected;
}

Result<std::map<std::string, int>> find_marks(const std::filesystem::path& file) {
  const auto lines = read_lines(file);
  if (!lines) return Error{lines.error()};
  std::map<std::string, int> marks;
  for (std::size_t index = 0; index < lines.value().size(); ++index) {
    const auto name = parse_mark(lines.value()[index]);
    if (!name) continue;
    const int number = static_cast<int>(index) + 1;
    if (!marks.emplace(*name, number).second) {
      return Error{fmt::format("{}:{}: MARK {} is there twice", file.string(), number, *name)};
    }
  }
  return marks;
}

}  // namespace forksight::suite
