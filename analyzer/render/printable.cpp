#include "render/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace forksight::render {

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

// True for spaces that are not U+0020 (Unicode's category Zs), for characters without a width, and for tag characters.
// A name with these spaces would look like a sentence of the report, and could be wrapped at any of them.
bool is_disguised(std::uint32_t code_point) {
  const bool is_space = code_point == 0xa0 || code_point == 0x1680 || (code_point >= 0x2000 && code_point <= 0x200a) ||
                        code_point == 0x202f || code_point == 0x205f || code_point == 0x3000;
  const bool has_no_width = code_point == 0xad || code_point == 0x180e ||
                            (code_point >= 0x200b && code_point <= 0x200d) ||
                            (code_point >= 0x2060 && code_point <= 0x2064) || code_point == 0xfeff;
  return is_space || has_no_width || (code_point >= 0xe0000 && code_point <= 0xe007f);
}

// True for C0, DEL, C1, line separators, characters that change the direction of text, and U+FFFE and U+FFFF. These two
// are no characters, so an XML document with one of them is not well-formed (XML 1.0, section 2.2).
bool is_control(std::uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) ||
         (code_point >= 0x202a && code_point <= 0x202e) || (code_point >= 0x2066 && code_point <= 0x2069) ||
         code_point == 0x2028 || code_point == 0x2029 || code_point == 0x200e || code_point == 0x200f ||
         code_point == 0x061c || code_point == 0xfffe || code_point == 0xffff || is_disguised(code_point);
}

// GitHub Actions and Azure Pipelines take "##[" and "##vso[" for the beginning of a command, anywhere in a line.
bool begins_command(std::string_view text) { return text.starts_with("##[") || text.starts_with("##vso["); }

}  // namespace

std::size_t sequence_length(std::string_view text, std::uint32_t& code_point) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) {
    code_point = first;
    return 1;
  }
  std::size_t length = 0;
  std::uint32_t smallest = 0;
  if ((first & 0xe0U) == 0xc0U) {
    length = 2, smallest = 0x80, code_point = first & 0x1fU;
  } else if ((first & 0xf0U) == 0xe0U) {
    length = 3, smallest = 0x800, code_point = first & 0x0fU;
  } else if ((first & 0xf8U) == 0xf0U) {
    length = 4, smallest = 0x10000, code_point = first & 0x07U;
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
    code_point = code_point << 6U | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  const bool is_surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  return code_point < smallest || code_point > 0x10ffff || is_surrogate ? 0 : length;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::uint32_t code_point = 0;
    const std::size_t length = sequence_length(text, code_point);
    if (length > 0 && !is_control(code_point) && !begins_command(text)) {
      out.append(text.substr(0, length));
    } else {
      for (const char c : text.substr(0, std::max<std::size_t>(length, 1))) {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string escape_json_controls(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    std::uint32_t code_point = 0;
    const std::size_t sequence = sequence_length(json, code_point);
    const std::size_t length = std::max<std::size_t>(sequence, 1);
    const bool is_replaced = code_point >= 0x7f ? is_control(code_point) : begins_command(json);
    if (sequence != 0 && is_replaced && code_point > 0xffff) {
      const std::uint32_t above = code_point - 0x10000;
      fmt::format_to(std::back_inserter(out), "\\u{:04x}\\u{:04x}", 0xd800 + (above >> 10U), 0xdc00 + (above & 0x3ffU));
    } else if (sequence != 0 && is_replaced) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", code_point);
    } else {
      out.append(json.substr(0, length));
    }
    json.remove_prefix(length);
  }
  return out;
}

std::size_t width(std::string_view printable_text) {
  return static_cast<std::size_t>(std::ranges::count_if(printable_text, [](char c) { return !is_continuation(c); }));
}

}  // namespace forksight::render
