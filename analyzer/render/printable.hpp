// Makes text fit for a terminal. Text out of traces may be any bytes.
#pragma once

#include <string>
#include <string_view>

namespace forksight::render {

// Returns valid UTF-8 without control characters. Control characters, newlines and tabs included, and bytes that are
// not UTF-8 become \xNN.
std::string printable(std::string_view text);

// The columns that the text takes on a terminal, one for each code point.
std::size_t width(std::string_view printable_text);

}  // namespace forksight::render
