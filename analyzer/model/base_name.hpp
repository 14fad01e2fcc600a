// The name of a file without its folder.
#pragma once

#include <string_view>

namespace forksight::model {

// Returns the part of the path after the last slash. Without a slash, this is the whole path. If the path ends with a
// slash, this is empty.
constexpr std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace forksight::model
