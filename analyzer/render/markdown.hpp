// Lays out a page of the documentation for a terminal.
#pragma once

#include <string>
#include <string_view>

#include "render/page.hpp"

namespace forksight::render {

// Reads the parts of Markdown that the pages use: headings, paragraphs, lists, blocks of code, tables, bold words and
// links. Text is wrapped; code is not wrapped. A row of a table becomes an item. The item begins with the first cell.
// Each further cell that is not empty becomes a paragraph, which begins with the name of the cell's column. A link
// becomes its text.
std::string render_markdown(std::string_view text, const Paper& paper);

}  // namespace forksight::render
