#include "files/open_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "files/dead_places.hpp"

namespace forksight::files {
namespace {

// File systems of the kernel. Their files have no size. A read of such a file can have an effect, wait, or never end.
constexpr std::array<std::uint32_t, 14> kKernelFileSystems = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
    DEBUGFS_MAGIC,    TRACEFS_MAGIC, SECURITYFS_MAGIC,   PSTOREFS_MAGIC,      EFIVARFS_MAGIC,
    BINFMTFS_MAGIC,   SELINUX_MAGIC, SMACK_MAGIC,        0x62656570 /* configfs */};

bool is_of_kernel(int fd) {
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return true;
  return std::ranges::find(kKernelFileSystems, static_cast<std::uint32_t>(status.f_type)) != kKernelFileSystems.end();
}

// Splits a path such as "/proc/17/root/usr/lib/x.so" into the root and the rest of the path within that root. False:
// the path is of another form.
bool split_at_root(std::string_view path, std::string& root, std::string& rest) {
  constexpr std::string_view kProc = "/proc/";
  constexpr std::string_view kRoot = "/root";
  if (!path.starts_with(kProc)) return false;
  const std::size_t end = path.find_first_not_of("0123456789", kProc.size());
  if (end == std::string_view::npos || end == kProc.size() || !path.substr(end).starts_with(kRoot)) return false;
  root = path.substr(0, end + kRoot.size());
  rest = path.substr(root.size());
  return rest.starts_with('/');
}

constexpr int kPlace = O_PATH | O_CLOEXEC;

// Returns the text of the symbolic link that `link` (O_PATH) refers to. On failure, returns "" and sets errno.
std::string read_link_text(int link) {
  std::array<char, PATH_MAX> text;
  const ssize_t size = ::readlinkat(link, "", text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

// Opens a reference to `path`, as a process with the root folder `root` sees this path: absolute links begin at `root`,
// and ".." does not lead out of it. openat2() with RESOLVE_IN_ROOT does the same. But Linux before 5.6 lacks it, and
// the process that reads files of strangers may not call it (proc/reader_rights.hpp). On failure, errno is that of
// openat(), or ELOOP: more than 40 links (the limit of Linux), or a link in a file system of the kernel.
Descriptor open_within(const Descriptor& root, std::string path) {
  constexpr int kMostLinks = 40;
  // the folders from the one below `root` to the current one
  std::vector<Descriptor> folders;
  int links = 0;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      if (!folders.empty()) folders.pop_back();
      continue;
    }
    const int current = folders.empty() ? root.get() : folders.back().get();
    Descriptor next(::openat(current, name.c_str(), kPlace | O_NOFOLLOW));
    struct stat status {};
    if (!next || ::fstat(next.get(), &status) != 0) return {};
    if (!S_ISLNK(status.st_mode)) {
      folders.push_back(std::move(next));
      continue;
    }
    if (++links > kMostLinks || is_of_kernel(next.get())) {
      errno = ELOOP;
      return {};
    }
    const std::string target = read_link_text(next.get());
    if (target.empty()) return {};
    if (target.front() == '/') folders.clear();
    path = target + "/" + (at < path.size() ? path.substr(at) : "");
    at = 0;
  }
  if (!folders.empty()) return std::move(folders.back());
  return Descriptor(::openat(root.get(), ".", kPlace));
}

// Opens only a reference to the file (O_PATH), which has no effect on the file itself.
Descriptor open_place(const std::string& path) {
  std::string root;
  std::string rest;
  if (!split_at_root(path, root, rest)) return Descriptor(::open(path.c_str(), kPlace));
  const Descriptor folder(::open(root.c_str(), kPlace | O_DIRECTORY));
  if (!folder) return {};
  return open_within(folder, rest);
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Opens for reading the file to which the O_PATH descriptor `place` refers. `status`: the stat(2) of this file.
int open_again(int place, const std::string& path, const struct stat& status) {
  constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int fd = ::open(fmt::format("/proc/self/fd/{}", place).c_str(), kRead);
  if (fd >= 0 || errno != ENOENT) return fd;
  // /proc is not mounted. So this function opens the path again, and checks that it still leads to the same file.
  fd = ::open(path.c_str(), kRead);
  struct stat now {};
  if (fd < 0 || (::fstat(fd, &now) == 0 && is_same(now, status))) return fd;
  ::close(fd);
  errno = EINVAL;
  return -1;
}

template <class MayRead>
Descriptor open_checked(const std::string& path, const MayRead& may_read) {
  if (is_dead_path(path)) {
    errno = ETIMEDOUT;
    return {};
  }
  const Descriptor place = open_place(path);
  if (!place) return {};
  struct stat status {};
  if (::fstat(place.get(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode) || is_of_kernel(place.get())) {
    errno = EINVAL;
    return {};
  }
  if (!may_read(status)) {
    errno = EACCES;
    return {};
  }
  return Descriptor(open_again(place.get(), path, status));
}

}  // namespace

Descriptor open_regular(const std::string& path) {
  return open_checked(path, [](const struct stat&) { return true; });
}

Descriptor open_mapped(const std::string& path, const std::optional<MappedFile>& mapped) {
  if (mapped && is_dead_device(fmt::format("{:02x}:{:02x}", mapped->major, mapped->minor))) {
    errno = ETIMEDOUT;
    return {};
  }
  return open_checked(path, [&](const struct stat& status) {
    if (!mapped || ::geteuid() != 0) return true;
    const bool is_it = status.st_ino == mapped->inode && major(status.st_dev) == mapped->major &&
                       minor(status.st_dev) == mapped->minor;
    return is_it || (status.st_mode & S_IROTH) != 0;
  });
}

std::string reason_of(int error) {
  switch (error) {
    case EINVAL: return "not a regular file";
    case ETIMEDOUT: return "its file system does not answer";
    default: return std::strerror(error);
  }
}

std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size() && offset + done <= static_cast<std::uint64_t>(INT64_MAX)) {
    const ssize_t got = ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<std::string> read_text(const std::string& path, std::uint64_t limit) {
  const Descriptor file = open_regular(path);
  if (!file) return Error{fmt::format("{}: {}", path, reason_of(errno))};
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return Error{fmt::format("{}: {}", path, std::strerror(errno))};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit) {
    return Error{fmt::format("{}: has {} bytes, forksight reads at most {} of such a file", path, size, limit)};
  }
  std::string text(size, '\0');
  text.resize(read_at(file.get(), 0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace forksight::files
