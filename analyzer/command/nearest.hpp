// Finds the words for suggestions such as "did you mean ...?".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace forksight {

// Returns the words of `known` that the user may have meant by `word`, the nearest first, three at most. Each of these
// words contains `word`, or differs from `word` by a few typing errors. Returns nothing if there is no such word.
std::vector<std::string> find_nearest(std::string_view word, const std::vector<std::string>& known);

// Returns the smallest number of insertions, deletions, replacements and swaps of two adjacent letters that turn one
// word into the other.
std::size_t edit_distance(std::string_view one, std::string_view other);

}  // namespace forksight
