// LD_PRELOAD ends a path at a blank and at a colon, and the loader replaces "$LIB" and similar words in it. A shim in a
// folder with such a name is loaded through a link whose own path has none of these.
#pragma once

#include <filesystem>
#include <vector>

#include "result.hpp"

namespace forksight {

// False: the loader would look for another file.
bool can_be_preloaded(const std::filesystem::path& path);

// Folders in which links may be made, the best first: the user's cache, then a folder of the user in TMPDIR and in
// /tmp.
std::vector<std::filesystem::path> list_link_folders();

// Returns `shim`, or a link to it in the first of these folders that is safe. The link serves all runs and stays. A
// process that outlives its run may execute a program at any time: if the link were removed from a folder like /tmp,
// another user could put a library of his own in its place.
Result<std::filesystem::path> make_preload_path(const std::filesystem::path& shim,
                                                const std::vector<std::filesystem::path>& folders);

}  // namespace forksight
