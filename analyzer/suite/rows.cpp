#include "suite/rows.hpp"

#include <algorithm>

#include "render/printable.hpp"

namespace forksight::suite {

std::string align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], render::width(row[column]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      line += row[column];
      if (column + 1 < row.size()) line.append(widths[column] - render::width(row[column]) + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string as_markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (std::size_t number = 0; number < rows.size(); ++number) {
    text += '|';
    for (const std::string& cell : rows[number]) {
      text += ' ';
      for (const char one : cell) text += one == '|' ? std::string("\\|") : std::string(1, one);
      text += cell.empty() ? "|" : " |";
    }
    text += '\n';
    if (number != 0) continue;
    text += '|';
    for (std::size_t column = 0; column < rows[number].size(); ++column) text += "---|";
    text += '\n';
  }
  return text;
}

}  // namespace forksight::suite
