// Makes text fit for a terminal. Text out of traces may be any bytes.
#pragma once

#include <string>
#include <string_view>

namespace forksight::render {

// Returns valid UTF-8 without control characters. Control characters, newlines and tabs included, and bytes that are
// not UTF-8 become \xNN.
std::string printable(std::string_view text);

// For a JSON text that is complete: writes the characters that printable() does not let through as \uXXXX, which means
// the same. ASCII stays as it is, because JSON escapes its control characters already. So a document that is shown on a
// terminal, or in a web page, cannot change the direction of its lines either.
std::string escape_json_controls(std::string_view json);

// The columns that the text takes on a terminal, one for each code point.
std::size_t width(std::string_view printable_text);

}  // namespace forksight::render
