// Formats tables as text. Each column is as wide as its widest cell.
#pragma once

#include <string>
#include <vector>

namespace forksight::suite {

// The first row is the heading. The last column is not padded.
std::string align(const std::vector<std::vector<std::string>>& rows);

// The same for Markdown: `|` in a cell is escaped.
std::string as_markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace forksight::suite
