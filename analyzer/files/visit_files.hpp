// Visits the files of a folder and of its subfolders. Other users may have made any of them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace forksight::files {

// Calls `visit` for each entry, which may be a folder. Searches each folder, and follows no link to a folder. A folder
// that cannot be read does not hide the others. Returns a sentence for each folder that was not searched. `folder`
// itself is such a folder, too.
std::vector<std::string> visit_files(const std::filesystem::path& folder,
                                     const std::function<void(const std::filesystem::path&)>& visit);

}  // namespace forksight::files
