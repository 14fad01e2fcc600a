#include "render/page.hpp"

#include <algorithm>

#include "render/printable.hpp"

namespace forksight::render {

namespace {

constexpr std::size_t kLabelColumn = 14;
constexpr std::size_t kRowIndent = 6;
constexpr std::size_t kRowColumn = 40;

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

void Page::styled(Style style, std::string_view printable_text) {
  const bool plain = !colour_ || style == Style::kPlain || printable_text.empty();
  if (!plain) out_ += escape_of(style);
  out_ += printable_text;
  if (!plain) out_ += "\x1b[0m";
}

void Page::line(Style style, std::string_view text) {
  styled(style, printable(text));
  out_ += '\n';
}

void Page::wrapped(std::string_view text, std::size_t indent) {
  std::size_t column = indent;
  bool at_start = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!at_start && column + 1 + width(word) > kColumns) {
      out_ += '\n';
      out_.append(indent, ' ');
      column = indent;
      at_start = true;
    }
    if (!at_start) out_ += ' ';
    out_ += word;
    column += width(word) + (at_start ? 0 : 1);
    at_start = false;
  }
  out_ += '\n';
}

void Page::labelled(std::string_view label, std::string_view text) {
  std::string head = "  " + std::string(label);
  if (text.empty()) {
    styled(Style::kBold, head);
    out_ += '\n';
    return;
  }
  head.resize(std::max(head.size() + 1, kLabelColumn + 2), ' ');
  styled(Style::kBold, head);
  wrapped(printable(text), kLabelColumn + 2);
}

void Page::item(Style mark_style, std::string_view mark, std::string_view text) {
  out_ += "    ";
  styled(mark_style, mark);
  out_ += ' ';
  wrapped(printable(text), 4 + mark.size() + 1);
}

void Page::row(std::string_view left, std::string_view right) {
  out_.append(kRowIndent, ' ');
  const std::string name = printable(left);
  out_ += name;
  if (!right.empty()) {
    const std::size_t used = kRowIndent + width(name);
    out_.append(used < kRowColumn ? kRowColumn - used : 2, ' ');
    styled(Style::kFaint, printable(right));
  }
  out_ += '\n';
}

}  // namespace forksight::render
