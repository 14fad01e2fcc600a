// Formats tables as text. Each column is as wide as its widest cell.
#pragma once

#include <string>
#include <vector>

namespace forksight::suite {

// Returns the table as text. The first row is the heading. The last column is not padded.
std::string align(const std::vector<std::vector<std::string>>& rows);

// Returns the table in Markdown. The first row is the heading. `|` in a cell is escaped.
std::string as_markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace forksight::suite
