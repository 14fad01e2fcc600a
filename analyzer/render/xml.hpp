// Text for XML 1.0: characters that XML cannot contain are written as \xNN.
#pragma once

#include <string>
#include <string_view>

namespace forksight::render {

// For an attribute or an element.
std::string escape_xml(std::string_view text);

// For an element: line breaks are kept, and the last line ends with a newline.
std::string escape_xml_lines(std::string_view text);

}  // namespace forksight::render
