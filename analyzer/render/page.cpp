#include "render/page.hpp"

#include <algorithm>

#include "render/link.hpp"
#include "render/printable.hpp"

namespace forksight::render {

namespace {

constexpr std::size_t kColumns = 100;  // used if the width is not known
constexpr std::size_t kNarrow = 60;    // on narrower pages, each label has a separate line
constexpr std::size_t kLabelColumn = 16;
constexpr std::size_t kHeadlineIndent = 4;  // of the lines after the first one
constexpr std::size_t kItemIndent = 4;
constexpr std::size_t kListIndent = 8;
constexpr std::size_t kRowIndent = 6;
constexpr std::size_t kPlaceIndent = 10;  // the indent of a place on a separate line
constexpr std::size_t kMostPlaceColumn = 40;

std::string_view escape_of(Style style) {
  switch (style) {
    case Style::kBold: return "\x1b[1m";
    case Style::kBad: return "\x1b[1;31m";
    case Style::kWarn: return "\x1b[1;33m";
    case Style::kGood: return "\x1b[1;32m";
    case Style::kFaint: return "\x1b[2m";
    case Style::kPlain: break;
  }
  return {};
}

}  // namespace

Page::Page(const PageOptions& paper)
    : colour_(paper.colour),
      link_host_(paper.colour ? paper.link_host : std::nullopt),
      is_narrow_(paper.columns.value_or(kColumns) < kNarrow),
      keeps_headlines_whole_(!paper.columns),
      columns_(paper.columns.value_or(kColumns)) {}

void Page::put(Style style, std::string_view printable_text) {
  const bool is_plain = !colour_ || style == Style::kPlain || printable_text.empty();
  if (!is_plain) out_ += escape_of(style);
  // GitHub Actions takes a line for a command if the line begins with blanks and "::". A name in the report could be
  // chosen so that a line begins like this.
  const bool is_command = is_blank_ && printable_text.starts_with("::");
  if (is_command) out_ += "\\x3a";
  out_ += printable_text.substr(is_command ? 1 : 0);
  is_blank_ = is_blank_ && printable_text.find_first_not_of(' ') == std::string_view::npos;
  if (!is_plain) out_ += "\x1b[0m";
  column_ += width(printable_text);
}

void Page::pad(std::size_t to_column) {
  if (column_ >= to_column) return;
  out_.append(to_column - column_, ' ');
  column_ = to_column;
}

void Page::end_line() {
  out_ += '\n';
  column_ = 0;
  is_blank_ = true;
}

void Page::flow(Style style, std::string_view text, std::size_t indent) {
  std::string line;  // words that are written together, in one style
  std::size_t end = column_;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && end + 1 + width(word) > columns_) {
      put(style, line);
      end_line();
      pad(indent);
      line.clear();
      end = column_;
    }
    if (!line.empty()) line += ' ';
    end += width(word) + (line.empty() ? 0 : 1);
    line += word;
  }
  put(style, line);
}

void Page::headline(Style style, std::string_view text) {
  if (keeps_headlines_whole_) {
    put(style, printable(text));
  } else {
    // Otherwise the name of a process could be chosen so that it begins a line like a headline of forksight.
    flow(style, printable(text), kHeadlineIndent);
  }
  end_line();
}

void Page::paragraph(Style style, std::string_view text, std::size_t indent) {
  pad(indent);
  flow(style, printable(text), indent == 0 ? 0 : indent + 2);
  end_line();
}

void Page::literal(std::string_view text, std::size_t indent) {
  pad(indent);
  put(Style::kPlain, printable(text));
  end_line();
}

void Page::labelled(std::string_view label, std::string_view text) {
  if (!label.empty()) {
    pad(2);
    put(Style::kBold, label);
  }
  if (!text.empty()) {
    if (is_narrow_ && !label.empty()) end_line();
    const std::size_t indent = is_narrow_ ? kItemIndent : kLabelColumn;
    if (column_ >= indent) pad(column_ + 1);
    pad(indent);
    flow(Style::kPlain, printable(text), indent);
  }
  end_line();
}

void Page::entry(std::string_view head, std::string_view text, std::size_t column) {
  constexpr std::size_t kHeadIndent = 2;
  pad(kHeadIndent);
  flow(Style::kPlain, printable(head), kHeadIndent + 2);
  if (!text.empty()) {
    if (column_ + 2 > column) end_line();
    pad(column);
    flow(Style::kPlain, printable(text), column);
  }
  end_line();
}

void Page::item(Style mark_style, std::string_view mark, std::string_view text) {
  pad(kItemIndent);
  put(mark_style, mark);
  pad(column_ + 1);
  flow(Style::kPlain, printable(text), is_narrow_ ? kItemIndent + 2 : column_);
  end_line();
}

void Page::list(std::string_view label, const std::vector<std::string>& items) {
  pad(kListIndent);
  put(Style::kPlain, label);
  const std::size_t indent = is_narrow_ ? kListIndent + 2 : column_ + 1;
  if (is_narrow_) end_line();
  for (const std::string& item : items) {
    pad(indent);
    flow(Style::kPlain, printable(item), is_narrow_ ? indent + 2 : indent);
    end_line();
  }
}

void Page::put_place(const Row& row, std::string_view place) {
  const std::string uri = link_host_ && !row.path.empty() ? file_uri(*link_host_, row.path) : std::string();
  if (!uri.empty()) out_ += link_start(uri);
  put(Style::kFaint, place);
  if (!uri.empty()) out_ += kLinkEnd;
}

void Page::row(const Row& row) {
  const std::string name = printable(row.name);
  const std::string place = printable(row.place);
  const std::string note = printable(row.note);
  pad(kRowIndent);
  const std::size_t place_column = std::min(kMostPlaceColumn, columns_ * 2 / 5);
  const std::size_t name_end = kRowIndent + width(name);
  const std::size_t start = name_end < place_column ? place_column : name_end + 2;
  const std::size_t place_end = start + width(place) + (note.empty() ? 0 : 1 + width(note));
  flow(Style::kPlain, name, kRowIndent + 2);
  if (!place.empty()) {
    const bool has_room = place_end <= columns_;
    if (!has_room) end_line();
    pad(has_room ? start : kPlaceIndent);
    put_place(row, place);
  }
  if (!note.empty()) {
    const bool has_room = column_ + 1 + width(note) <= columns_;
    if (!has_room) end_line();
    pad(has_room ? column_ + 1 : kPlaceIndent);
    put(Style::kFaint, note);
  }
  end_line();
}

void Page::add_note(std::string_view text) {
  pad(kRowIndent);
  flow(Style::kFaint, printable(text), kRowIndent + 1);
  end_line();
}

}  // namespace forksight::render
