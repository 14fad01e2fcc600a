// Text out of traces may be any bytes: made fit for a terminal or for JSON here, and nowhere else.
#pragma once

#include <string>
#include <string_view>

namespace forksight::render {

// Valid UTF-8 without control characters: these, and bytes that are no UTF-8, become \xNN. Newlines and tabs too.
std::string printable(std::string_view text);

// Columns that it takes on a terminal, one for each code point.
std::size_t width(std::string_view printable_text);

}  // namespace forksight::render
