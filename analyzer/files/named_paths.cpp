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

std::vector<NamedPlace> find_named_places(std::string_view path) {
  std::vector<NamedPlace> found;
  for (const std::string& named : named_paths()) {
    if (!path.starts_with(named)) continue;
    const std::string_view rest = path.substr(named.size());
    const bool is_below = !rest.empty() && (named.ends_with('/') || rest.front() == '/') && !goes_up(rest);
    if (rest.empty() || is_below) found.push_back({named, std::string(rest)});
  }
  return found;
}

bool is_named_path(std::string_view path) { return !find_named_places(path).empty(); }

}  // namespace forksight::files
