#include "session/preload_link.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace forksight {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kCacheMode = 0700;  // as the XDG base directory specification says
// A process of the run that changes its user must still be able to reach the link.
constexpr mode_t kLinkFolderMode = 0711;

// Returns the folder that the variable names; "" if the variable is not set to an absolute path.
fs::path find_folder(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value != '/' ? fs::path() : fs::path(value);
}

// True if only this user and root can replace files that this user has in the folder. `may_be_shared`: other users may
// also have files in the folder.
bool is_safe(const struct stat& status, bool may_be_shared) {
  const bool is_own = status.st_uid == ::geteuid() || (may_be_shared && status.st_uid == 0);
  const bool is_shared = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  // In a folder with the sticky bit each user can remove only the user's own files.
  return S_ISDIR(status.st_mode) && is_own && (!is_shared || (may_be_shared && (status.st_mode & S_ISVTX) != 0));
}

// Makes the folder, unless it exists. Returns 0 or an errno. The errno is EPERM if another user could have put a file
// into the folder.
int make_own_folder(const fs::path& folder) {
  struct stat status {};
  if (::mkdir(folder.c_str(), kLinkFolderMode) != 0 && errno != EEXIST) return errno;
  // lstat, not stat: in /tmp another user may have made a link of that name before.
  if (::lstat(folder.c_str(), &status) != 0) return errno;
  return is_safe(status, false) ? 0 : EPERM;
}

// Makes the link, unless it exists. Returns 0 or an errno.
int make_link(const fs::path& target, const fs::path& link) {
  std::error_code error;
  const auto is_made = [&] { return fs::read_symlink(link, error) == target && !error; };
  if (is_made()) return 0;
  const fs::path fresh = fmt::format("{}.{}", link.string(), ::getpid());
  ::unlink(fresh.c_str());  // a killed process that had the same pid may have left this link behind
  if (::symlink(target.c_str(), fresh.c_str()) == 0 && ::rename(fresh.c_str(), link.c_str()) == 0) return 0;
  const int problem = errno;
  ::unlink(fresh.c_str());
  return is_made() ? 0 : problem;  // another run may have made the link in the meantime
}

int make_link_below(const fs::path& folder, const fs::path& shim, const fs::path& link) {
  const fs::path parent = folder.parent_path();
  ::mkdir(parent.c_str(), kCacheMode);  // the parent folder usually exists, because other programs use it
  struct stat status {};
  if (::stat(parent.c_str(), &status) != 0) return errno;
  if (!is_safe(status, true)) return EPERM;
  for (const fs::path& own : {folder, link.parent_path()}) {
    if (const int problem = make_own_folder(own); problem != 0) return problem;
  }
  return make_link(shim, link);
}

}  // namespace

bool can_be_preloaded(const fs::path& path) { return path.native().find_first_of(" :$") == std::string::npos; }

std::vector<fs::path> list_link_folders() {
  std::vector<fs::path> folders;
  if (const fs::path cache = find_folder("XDG_CACHE_HOME"); !cache.empty()) {
    folders.push_back(cache / "forksight");
  } else if (const fs::path home = find_folder("HOME"); !home.empty()) {
    folders.push_back(home / ".cache" / "forksight");
  }
  const std::string own = fmt::format("forksight-{}", ::geteuid());
  if (const fs::path place = find_folder("TMPDIR"); !place.empty()) folders.push_back(place / own);
  folders.push_back(fs::path("/tmp") / own);
  return folders;
}

Result<fs::path> make_preload_path(const fs::path& shim, const std::vector<fs::path>& folders) {
  if (can_be_preloaded(shim)) return shim;
  // One link for each place where forksight is installed or built.
  const std::string place = fmt::format("shim-{:016x}", std::hash<std::string>()(shim.native()));
  std::string tried;
  for (const fs::path& folder : folders) {
    const fs::path link = folder / place / shim.filename();
    const int problem = can_be_preloaded(link) ? make_link_below(folder, shim, link) : EINVAL;
    if (problem == 0) return link;
    tried += fmt::format("; {}: {}", folder.string(),
                         problem == EINVAL  ? "its path has such a character, too"
                         : problem == EPERM ? "another user could change what is in it"
                                            : std::strerror(problem));
  }
  return Error{
      fmt::format("{}: LD_PRELOAD cannot name a path with a blank, a colon or a dollar sign, and no link to it can be "
                  "made{}; set XDG_CACHE_HOME to a folder of your own, or install forksight elsewhere",
                  shim.string(), tried)};
}

}  // namespace forksight
