// Makes text safe for a terminal. Text from traces may contain any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace forksight::render {

// Returns valid UTF-8 without control characters. Control characters, including newlines and tabs, and bytes that are
// not UTF-8 become \xNN. So do spaces other than U+0020, characters without a width, and the first character of "##[",
// which is a command in the log of a CI system.
std::string printable(std::string_view text);

// Writes each control character as \uXXXX, which has the same meaning in JSON. The control characters are those that
// printable() replaces. `json` must be a complete JSON text. Below U+007F no character changes, because JSON contains
// those control characters only in escaped form, or between its values. So a document that is shown on a terminal or in
// a web page cannot change the direction of its lines.
std::string escape_json_controls(std::string_view json);

// Returns the length of the well-formed UTF-8 sequence at the beginning of `text`, which is not empty; 0 if there is none.
// Overlong forms and surrogates are not well-formed (RFC 3629).
std::size_t sequence_length(std::string_view text, std::uint32_t& code_point);

// Returns the number of columns that the text takes on a terminal. Each code point counts as one column.
std::size_t width(std::string_view printable_text);

}  // namespace forksight::render
