// Words of a line as a POSIX shell would have them, and back.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace forksight::suite {

// Blanks separate, '...' and "..." join, a backslash takes the next character as it is. An error for a quote that is
// not closed. Nothing is expanded.
Result<std::vector<std::string>> split_words(std::string_view line);

// A line that a shell reads as these words.
std::string join_words(std::span<const std::string> words);

}  // namespace forksight::suite
