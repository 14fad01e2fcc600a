// Escapes text for XML 1.0. Characters that XML cannot contain are written as \xNN.
#pragma once

#include <string>
#include <string_view>

namespace forksight::render {

// Escapes a text that is an attribute or the content of an element.
std::string escape_xml(std::string_view text);

// Escapes a text that is the content of an element. Keeps the line breaks, and ends the last line with a newline.
std::string escape_xml_lines(std::string_view text);

}  // namespace forksight::render
