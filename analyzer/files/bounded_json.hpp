// Checks JSON that other users wrote. A text of small items becomes a tree of up to 30 times its size. So the items are
// counted before the tree is made.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forksight::files {

struct JsonLimits {
  std::size_t items = 0;  // all objects, lists, numbers and texts together
  int depth = 0;          // how deep objects and lists are nested
};

// Returns "" if `text` is JSON within the limits. Otherwise returns what is wrong, as the end of a sentence about the
// file.
std::string find_json_fault(std::string_view text, const JsonLimits& limits);

}  // namespace forksight::files
