#include "files/visit_files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "files/budgets.hpp"

namespace forksight::files {

namespace fs = std::filesystem;

std::vector<std::string> visit_files(const fs::path& folder, const std::function<void(const fs::path&)>& visit) {
  struct Folder {
    fs::path path;
    int depth;
  };
  std::vector<Folder> left{{folder, 0}};
  std::vector<std::string> limits;
  while (!left.empty()) {
    const Folder now = std::move(left.back());
    left.pop_back();
    std::vector<Folder> inner;
    std::error_code error;
    for (fs::directory_iterator at(now.path, error); !error && at != fs::directory_iterator(); at.increment(error)) {
      std::error_code unknown;
      visit(at->path());
      if (at->symlink_status(unknown).type() == fs::file_type::directory) inner.push_back({at->path(), now.depth + 1});
    }
    if (error) limits.push_back(fmt::format("{}: not searched to its end: {}", now.path.string(), error.message()));
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
