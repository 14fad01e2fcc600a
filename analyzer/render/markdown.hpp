// A page of the documentation, laid out for a terminal.
#pragma once

#include <string>
#include <string_view>

#include "render/page.hpp"

namespace forksight::render {

// Reads the parts of Markdown that the pages use: headings, paragraphs, lists, blocks of code, tables, bold words and
// links. Text is wrapped, and code is not. A row of a table becomes an item: its first cell, then a paragraph for each
// further cell that is not empty, with the name of its column. A link becomes its text.
std::string render_markdown(std::string_view text, const Paper& paper);

}  // namespace forksight::render
