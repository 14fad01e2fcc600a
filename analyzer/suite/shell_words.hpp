// Splits a line into words as a POSIX shell does, and joins words to a line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace forksight::suite {

// Blanks separate words. Blanks inside of '...' and "..." do not. A backslash takes its special meaning from the next
// character: outside of quotes from each character, inside of "..." from a quotation mark and a backslash. Inside of
// '...' it is an ordinary character. A quote that is not closed is an error. Nothing is expanded.
Result<std::vector<std::string>> split_words(std::string_view line);

// Makes a line that a shell reads as these words.
std::string join_words(std::span<const std::string> words);

}  // namespace forksight::suite
