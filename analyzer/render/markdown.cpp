#include "render/markdown.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace forksight::render {
namespace {

constexpr std::size_t kBulletIndent = 2;
constexpr std::size_t kCellIndent = 4;
constexpr std::size_t kCodeIndent = 4;

// Replaces "[name](address)" by "name", and removes "**".
std::string strip_inline(std::string_view text) {
  std::string result;
  bool is_code = false;
  while (!text.empty()) {
    if (!is_code && text.starts_with("**")) {
      text.remove_prefix(2);
      continue;
    }
    const std::size_t middle = !is_code && text.front() == '[' ? text.find("](") : std::string_view::npos;
    const std::size_t end = middle == std::string_view::npos ? middle : text.find(')', middle);
    if (end != std::string_view::npos) {
      result += strip_inline(text.substr(1, middle - 1));
      text.remove_prefix(end + 1);
      continue;
    }
    if (text.front() == '`') is_code = !is_code;
    result += text.front();
    text.remove_prefix(1);
  }
  return result;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// Splits a row of a table into its cells. "| a | b |" has two cells.
std::vector<std::string> read_cells(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t at = 1; at < line.size(); ++at) {
    if (line[at] == '\\' && at + 1 < line.size() && line[at + 1] == '|') continue;
    if (line[at] == '|' && line[at - 1] != '\\') {
      cells.push_back(strip_inline(trim(cell)));
      cell.clear();
    } else {
      cell += line[at];
    }
  }
  return cells;
}

bool is_rule_of_table(std::string_view line) { return line.find_first_not_of("|-: ") == std::string_view::npos; }

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return lines;
}

class Layout {
 public:
  explicit Layout(const PageOptions& paper) : page_(paper) {}

  void add(std::string_view line) {
    if (line.starts_with("```")) {
      end_block();
      is_code_ = !is_code_;
    } else if (is_code_) {
      page_.literal(line, line.empty() ? 0 : kCodeIndent);
    } else if (line.starts_with('|')) {
      add_row(line);
    } else if (trim(line).empty()) {
      end_block();
      page_.blank();
    } else if (line.starts_with('#')) {
      end_block();
      page_.headline(Style::kBold, strip_inline(trim(line.substr(line.find_first_not_of('#')))));
    } else if (line.starts_with("- ")) {
      end_block();
      is_item_ = true;
      block_ = line;
    } else {
      if (!block_.empty()) block_ += ' ';
      block_ += trim(line);
    }
  }

  std::string take() {
    end_block();
    return page_.take();
  }

 private:
  // Adds the paragraph or list item that was collected in `block_`, possibly from several lines of source.
  void end_block() {
    if (!block_.empty()) page_.paragraph(Style::kPlain, strip_inline(block_), is_item_ ? kBulletIndent : 0);
    block_.clear();
    is_item_ = false;
    columns_.reset();
  }

  void add_row(std::string_view line) {
    if (!columns_) {
      end_block();
      columns_ = read_cells(line);
      return;
    }
    if (is_rule_of_table(line)) return;
    const std::vector<std::string> cells = read_cells(line);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i == 0) {
        page_.paragraph(Style::kPlain, "- " + cells[i], kBulletIndent);
      } else if (!cells[i].empty() && i < columns_->size()) {
        page_.paragraph(Style::kFaint, (*columns_)[i] + ": " + cells[i], kCellIndent);
      }
    }
  }

  Page page_;
  bool is_code_ = false;
  bool is_item_ = false;
  std::string block_;
  std::optional<std::vector<std::string>> columns_;  // headings of the table that is being read
};

}  // namespace

std::string render_markdown(std::string_view text, const PageOptions& paper) {
  Layout layout(paper);
  for (const std::string_view line : split_lines(text)) layout.add(line);
  return layout.take();
}

}  // namespace forksight::render
