// Splits a line into words as a POSIX shell does, and joins words to a line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace forksight::suite {

// Blanks separate words. Blanks inside of '...' and "..." do not. The character behind a backslash stands for itself. A
// quote that is not closed is an error. Nothing is expanded.
Result<std::vector<std::string>> split_words(std::string_view line);

// Makes a line that a shell reads as these words.
std::string join_words(std::span<const std::string> words);

}  // namespace forksight::suite
