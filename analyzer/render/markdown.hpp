// Lays out a page of the documentation for a terminal.
#pragma once

#include <string>
#include <string_view>

#include "render/page.hpp"

namespace forksight::render {

// Reads the parts of Markdown that the pages use: headings, paragraphs, lists, blocks of code, tables, bold words and
// links. Text is wrapped, but code is not. A link becomes its text. Each row of a table becomes a list item. The item
// begins with the first cell of the row. Each further cell that is not empty becomes a paragraph of the item. This
// paragraph begins with the heading of the cell's column.
std::string render_markdown(std::string_view text, const PageOptions& paper);

}  // namespace forksight::render
