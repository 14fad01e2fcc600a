// In LD_PRELOAD a blank or a colon separates paths, and the loader replaces "$LIB" and similar words in a path. So if
// the path of the shim contains a blank, a colon or a dollar sign, the shim is loaded through a link. The path of the
// link contains none of these characters.
#pragma once

#include <filesystem>
#include <vector>

#include "result.hpp"

namespace forksight {

// False if the path contains a blank, a colon or a dollar sign: the loader would look for another file.
bool can_be_preloaded(const std::filesystem::path& path);

// Returns the folders in which links may be made, the best first: the user's cache, then a folder of the user in TMPDIR
// and in /tmp.
std::vector<std::filesystem::path> list_link_folders();

// Returns `shim` if it can be preloaded. Otherwise returns a link to `shim`, in the first safe folder of the list. All
// runs use the same link. No run removes the link: a process may outlive its run and execute a program later, and
// then the loader follows the link again. If the link were gone from a folder like /tmp, another user could put a
// library of the same name in its place.
Result<std::filesystem::path> make_preload_path(const std::filesystem::path& shim,
                                                const std::vector<std::filesystem::path>& folders);

}  // namespace forksight
