#include "files/named_paths.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace forksight::files {
namespace {

std::vector<std::string>& named_paths() {
  static std::vector<std::string> paths;
  return paths;
}

bool goes_up(std::string_view rest) {
  for (std::size_t at = 0; at < rest.size();) {
    const std::size_t end = std::min(rest.find('/', at), rest.size());
    if (rest.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

void name_path(std::string path) {
  if (!path.empty()) named_paths().push_back(std::move(path));
}

bool is_named_path(std::string_view path) {
  return std::ranges::any_of(named_paths(), [&](const std::string& named) {
    if (!path.starts_with(named)) return false;
    const std::string_view rest = path.substr(named.size());
    return rest.empty() || ((named.ends_with('/') || rest.front() == '/') && !goes_up(rest));
  });
}

}  // namespace forksight::files
