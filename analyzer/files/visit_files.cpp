#include "files/visit_files.hpp"

#include <dirent.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "files/dead_places.hpp"
#include "files/opener.hpp"

namespace forksight::files {

namespace fs = std::filesystem;

namespace {

// Calls `visit` for each entry but "." and "..", until `visit` returns false. Tells `visit` whether the entry is a
// folder. Returns an errno, or 0.
int visit_entries(const fs::path& folder, const std::function<bool(const fs::path&, bool is_folder)>& visit) {
  if (is_dead_path(folder.string())) return ETIMEDOUT;
  DIR* const directory = open_folder(folder.string(), Wish::kFolder);
  if (directory == nullptr) return errno;
  for (errno = 0; const dirent* const entry = ::readdir(directory); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const fs::path path = folder / name;
    std::error_code unknown;
    // Some file systems do not say what kind of file an entry is.
    const bool is_folder = entry->d_type == DT_UNKNOWN
                               ? fs::symlink_status(path, unknown).type() == fs::file_type::directory
                               : entry->d_type == DT_DIR;
    if (!visit(path, is_folder)) {
      errno = 0;
      break;
    }
  }
  const int error = errno;
  ::closedir(directory);
  return error;
}

}  // namespace

std::vector<std::string> visit_files(const fs::path& folder, const std::function<void(const fs::path&)>& visit,
                                     std::size_t max_entries) {
  struct Folder {
    fs::path path;
    int depth;
  };
  // Folders near the first one come before deeper ones.
  std::deque<Folder> left{{folder, 0}};
  std::vector<std::string> limits;
  std::size_t entries = 0;
  while (!left.empty()) {
    const Folder now = std::move(left.front());
    left.pop_front();
    std::vector<Folder> inner;
    const int error = visit_entries(now.path, [&](const fs::path& path, bool is_folder) {
      if (++entries > max_entries) return false;
      visit(path);
      if (is_folder) inner.push_back({path, now.depth + 1});
      return true;
    });
    if (entries > max_entries) {
      limits.push_back(fmt::format("{}: not searched to its end: it has more than {} files and folders",
                                   folder.string(), max_entries));
      break;
    }
    if (error != 0)
      limits.push_back(fmt::format("{}: not searched to its end: {}", now.path.string(), std::strerror(error)));
    if (now.depth < kMaxFolderDepth) {
      std::ranges::move(inner, std::back_inserter(left));
    } else if (!inner.empty()) {
      limits.push_back(fmt::format("{}: its subfolders are not searched, because they are more than {} folders deep",
                                   now.path.string(), kMaxFolderDepth));
    }
  }
  return limits;
}

}  // namespace forksight::files
