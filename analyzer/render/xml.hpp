// Text for XML 1.0: what XML cannot hold is written as \xNN.
#pragma once

#include <string>
#include <string_view>

namespace forksight::render {

// For an attribute or an element.
std::string escape_xml(std::string_view text);

// For an element: the lines stay lines, and the last one ends with a newline.
std::string escape_xml_lines(std::string_view text);

}  // namespace forksight::render
