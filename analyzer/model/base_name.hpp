// The name of a file without its folder.
#pragma once

#include <string_view>

namespace forksight::model {

// Returns the part behind the last slash: the whole path if it has no slash, and nothing if it ends with a slash.
constexpr std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace forksight::model
