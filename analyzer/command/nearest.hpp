// Finds the words for suggestions such as "did you mean ...?".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forksight {

// Returns the words of `known` that the user may have meant by `word`, the nearest first, three at most. Each of these
// words contains `word`, or differs from `word` by a few typing errors. Returns nothing if there is no such word.
std::vector<std::string> find_nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace forksight
