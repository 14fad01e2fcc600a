#include "suite/shell_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace forksight::suite {
namespace {

bool is_blank(char one) { return one == ' ' || one == '\t' || one == '\r' || one == '\n'; }

bool is_plain(char one) {
  return std::isalnum(static_cast<unsigned char>(one)) != 0 ||
         std::string_view("@%+=:,./-_").find(one) != std::string_view::npos;
}

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool is_open = false;  // a word has begun, perhaps an empty one
  char quote = '\0';
  for (std::size_t index = 0; index < line.size(); ++index) {
    const char one = line[index];
    const bool escapes = one == '\\' && index + 1 < line.size() &&
                         (quote == '\0' || (quote == '"' && (line[index + 1] == '"' || line[index + 1] == '\\')));
    if (escapes) {
      word += line[++index];
      is_open = true;
    } else if (quote != '\0') {
      if (one == quote) {
        quote = '\0';
      } else {
        word += one;
      }
    } else if (one == '"' || one == '\'') {
      quote = one;
      is_open = true;
    } else if (is_blank(one)) {
      if (is_open) words.push_back(std::move(word));
      word.clear();
      is_open = false;
    } else {
      word += one;
      is_open = true;
    }
  }
  if (quote != '\0') return Error{fmt::format("a {} that is not closed in: {}", quote, line)};
  if (is_open) words.push_back(std::move(word));
  return words;
}

std::string join_words(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && std::ranges::all_of(word, is_plain)) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char one : word) line += one == '\'' ? std::string("'\"'\"'") : std::string(1, one);
    line += '\'';
  }
  return line;
}

}  // namespace forksight::suite
