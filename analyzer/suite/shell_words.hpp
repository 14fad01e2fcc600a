// Splits a line into words as a POSIX shell does, and joins words to a line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace forksight::suite {

// Blanks separate words, except inside of '...' and "...". After a backslash, the next character is an ordinary
// character. Inside of "...", this is so only for a quotation mark and a backslash. Inside of '...', the backslash
// itself is an ordinary character. A quote that is not closed is an error. Nothing is expanded.
Result<std::vector<std::string>> split_words(std::string_view line);

// Makes a line that a shell reads as these words.
std::string join_words(std::span<const std::string> words);

}  // namespace forksight::suite
