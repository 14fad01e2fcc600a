// Finds the words of CMD [ARG...], for the verbs that run a command. These are all words after the first "--",
// unchanged.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace forksight {

inline std::vector<std::string> words_after_dashes(int argc, const char* const* argv) {
  const char* const* const end = argv + argc;
  const char* const* const dashes =
      std::find_if(argv + 1, end, [](const char* word) { return std::string_view(word) == "--"; });
  return dashes == end ? std::vector<std::string>() : std::vector<std::string>(dashes + 1, end);
}

}  // namespace forksight
