// Lines of a text report: wrapped with a hanging indent, coloured if asked, never a control character out of a name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forksight::render {

enum class Style { kPlain, kBold, kBad, kWarn, kGood, kFaint };

class Page {
 public:
  explicit Page(bool colour) : colour_(colour) {}

  // A line of its own, not wrapped.
  void line(Style style, std::string_view text);
  void blank() { out_ += '\n'; }
  // "  Label       text", wrapped; further lines are indented under the text. `label` and `mark` are ours, and ASCII.
  void labelled(std::string_view label, std::string_view text);
  // "    mark text", wrapped under the text.
  void item(Style mark_style, std::string_view mark, std::string_view text);
  // "      left            right": two columns, `right` faint.
  void row(std::string_view left, std::string_view right);

  std::string take() { return std::move(out_); }

 private:
  static constexpr std::size_t kColumns = 100;
  void wrapped(std::string_view printable_text, std::size_t indent);
  void styled(Style style, std::string_view printable_text);

  bool colour_;
  std::string out_;
};

}  // namespace forksight::render
