// "Did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forksight {

// Words of `known` that the user may have meant by `word`, the nearest first, three at most: `word` is a part of them,
// or they differ by a few typing errors. Empty if none is near.
std::vector<std::string> find_nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace forksight
