// Lays out the lines of a text report. The lines are wrapped with a hanging indent, and coloured if the user wants
// colour. Control characters in names are shown as \xNN.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forksight::render {

enum class Style { kPlain, kBold, kBad, kWarn, kGood, kFaint };

// What is known about the output to which the text is written.
struct PageOptions {
  bool colour = false;
  // The number of columns, from the terminal or from COLUMNS. If it is not known, text wraps at 100 columns. Then
  // headlines are not wrapped, so that each headline can be understood alone in a log.
  std::optional<std::size_t> columns = {};
  // The name of this host, for links to files. Without a name, or without colour, there are no links.
  std::optional<std::string> link_host = {};
};

// A name and its place, for example a function and its line. The place may link to `path`.
struct Row {
  std::string_view name = {};
  std::string_view place = {};  // never wrapped, so that users can copy it
  std::string_view note = {};   // "(inlined)"
  std::string_view path = {};   // an absolute path that exists; "": no link
};

// Lays out a report. A word that is wider than the page is not cut, so that users can copy long paths.
class Page {
 public:
  explicit Page(const PageOptions& paper);

  // Adds a headline. It is not wrapped if the width of the page is not known. If it is wrapped, its further lines are
  // indented.
  void headline(Style style, std::string_view text);
  // Adds a paragraph. Its first line begins at column `indent`. The other lines begin two columns further to the right,
  // but at column 0 if `indent` is 0.
  void paragraph(Style style, std::string_view text, std::size_t indent = 0);
  void blank() { out_ += '\n'; }
  // Adds a line of code, which is never wrapped and keeps its blanks.
  void literal(std::string_view text, std::size_t indent);
  // Adds "  Label       text", wrapped. Further lines begin under the text. `label` is always an ASCII text of
  // forksight itself. The same is true of `mark` in item().
  void labelled(std::string_view label, std::string_view text);
  // Adds "  head    text", wrapped. The text begins in column `column`, on the next line if the head is too long.
  void entry(std::string_view head, std::string_view text, std::size_t column);
  // Adds "    mark text", wrapped. Further lines begin under the text.
  void item(Style mark_style, std::string_view mark, std::string_view text);
  // Adds "        label item". Each further item has a separate line, under the first item.
  void list(std::string_view label, const std::vector<std::string>& items);
  // Adds "      name            place note" in two columns. If the page is too narrow, adds several lines.
  void row(const Row& row);
  // Adds "      (text)", faint. This stands for rows that are left out.
  void add_note(std::string_view text);

  std::string take() { return std::move(out_); }

 private:
  void put(Style style, std::string_view printable_text);
  void pad(std::size_t to_column);
  void end_line();
  // Writes words from the current column on. Further lines begin at `indent`.
  void flow(Style style, std::string_view printable_text, std::size_t indent);
  void put_place(const Row& row, std::string_view printable_place);

  bool colour_;
  std::optional<std::string> link_host_;
  bool is_narrow_;
  bool keeps_headlines_whole_;
  std::size_t columns_;
  std::size_t column_ = 0;
  bool is_blank_ = true;  // the present line has no text yet, only blanks
  std::string out_;
};

}  // namespace forksight::render
