// "Did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forksight {

// Those of `known` that somebody may have meant by `word`, the nearest first, three at most: `word` is a part of them, or
// they are a few typing errors away. Empty if none is near.
std::vector<std::string> find_nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace forksight
