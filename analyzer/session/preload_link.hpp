// LD_PRELOAD ends a path at a blank and at a colon, and the loader replaces "$LIB" and its like in it. A shim in a
// folder with such a name is named through a link whose own path has none of these.
#pragma once

#include <filesystem>
#include <vector>

#include "result.hpp"

namespace forksight {

// False: the loader would look for another file.
bool can_be_preloaded(const std::filesystem::path& path);

// Where links may be made, best first: the user's cache, then a folder of the user's own in TMPDIR and in /tmp.
std::vector<std::filesystem::path> list_link_folders();

// `shim`, or a link to it that is below the first of these folders where one can be kept safely. The link is for all
// runs and stays: a process that outlives its run may execute a program at any time, and if the link were removed from
// a folder like /tmp, another user could put a library of his own in its place.
Result<std::filesystem::path> make_preload_path(const std::filesystem::path& shim,
                                                const std::vector<std::filesystem::path>& folders);

}  // namespace forksight
