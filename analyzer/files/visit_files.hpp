// Visits the files of a folder and of its subfolders. Other users may have made any of these files and folders.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace forksight::files {

// Calls `visit` for each entry, which may be a folder. Searches each folder, and follows no link to a folder. If a
// folder cannot be read, the other folders are still searched. Returns a sentence for each folder that was not searched
// to its end, also for `folder` itself.
std::vector<std::string> visit_files(const std::filesystem::path& folder,
                                     const std::function<void(const std::filesystem::path&)>& visit);

}  // namespace forksight::files
