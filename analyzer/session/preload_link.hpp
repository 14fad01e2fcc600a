// In LD_PRELOAD a blank and a colon separate paths, and the loader replaces "$LIB" and similar words in a path. So a
// shim whose path has such characters is loaded through a link whose own path has none of them.
#pragma once

#include <filesystem>
#include <vector>

#include "result.hpp"

namespace forksight {

// False if the path has such a character: the loader would look for another file.
bool can_be_preloaded(const std::filesystem::path& path);

// Folders in which links may be made, the best first: the user's cache, then a folder of the user in TMPDIR and in
// /tmp.
std::vector<std::filesystem::path> list_link_folders();

// Returns `shim` if it can be preloaded, else a link to it in the first of these folders that is safe. All runs use the
// same link, and it is never removed: a process that outlives its run may execute a program at any time, and if the
// link were gone from a folder like /tmp, another user could put a library of their own in its place.
Result<std::filesystem::path> make_preload_path(const std::filesystem::path& shim,
                                                const std::vector<std::filesystem::path>& folders);

}  // namespace forksight
