// Splits the texts of /proc into lines, words and numbers. Only the files of this folder use these functions.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace forksight::proc {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Removes the next word from `text` and returns it; "" at the end of the text.
constexpr std::string_view next_word(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  std::size_t length = 0;
  while (length < text.size() && !is_blank(text[length])) ++length;
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

// Parses `text` into `out`. False unless all of `text` is one number.
template <class T>
bool parse_number(std::string_view text, T& out, int base = 10) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc{} && stop == text.data() + text.size() && !text.empty();
}

// Calls `visit` with each line, without the newline.
template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace forksight::proc
