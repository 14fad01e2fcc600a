// Visits the files of a folder and of its subfolders. Other users may have made any of these files and folders.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "files/budgets.hpp"

namespace forksight::files {

// Calls `visit` for each entry, which may be a folder. Searches each folder, and follows no link to a folder. If a
// folder cannot be read, the other folders are still searched. The search visits near folders first, and ends after
// `max_entries` entries. Returns a sentence for each folder that was not searched to its end, also for `folder` itself.
std::vector<std::string> visit_files(const std::filesystem::path& folder,
                                     const std::function<void(const std::filesystem::path&)>& visit,
                                     std::size_t max_entries = kMaxFolderEntries);

}  // namespace forksight::files
