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
#include "files/opener.hpp"

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

// Knows the user for whom a path is resolved. Without a user, the rights of this process decide.
class Walker {
 public:
  explicit Walker(const Owner* owner) : owner_(owner) {}

  bool is_checked() const { return owner_ != nullptr || follows_link_of_stranger_; }
  bool may_search(const struct stat& folder) const { return may(folder, S_IXOTH); }
  bool may_read(const struct stat& file) const { return may(file, S_IROTH); }

  // If forksight runs as root and the path contains a link of another user, the rest of the path is resolved for that
  // user. If forksight does not run as root, the kernel checks the rights, so nobody gains anything by a link.
  void note_link(const struct stat& link) {
    if (is_checked() || link.st_uid == 0 || ::geteuid() != 0) return;
    follows_link_of_stranger_ = true;
    stranger_ = {link.st_uid, link.st_gid, {}};
  }

 private:
  // `bit`: S_IROTH or S_IXOTH. The same permission of the group is 3 bits higher, and that of the owner is 6 bits
  // higher.
  bool may(const struct stat& status, mode_t bit) const {
    if (!is_checked()) return true;
    const Owner& user = follows_link_of_stranger_ ? stranger_ : *owner_;
    if (user.uid == 0) return true;
    if (status.st_uid == user.uid) return (status.st_mode & (bit << 6U)) != 0;
    const bool is_in_group =
        status.st_gid == user.gid || std::ranges::find(user.groups, status.st_gid) != user.groups.end();
    return (status.st_mode & (is_in_group ? bit << 3U : bit)) != 0;
  }

  const Owner* owner_;
  bool follows_link_of_stranger_ = false;
  Owner stranger_;
};

struct Place {
  Descriptor file;
  struct stat status {};
};

// Opens a reference to `path` in the way in which a process with the root folder `root` sees it: absolute links begin
// at `root`, and ".." does not lead out of `root`. openat2() with RESOLVE_IN_ROOT does the same. But Linux before 5.6
// lacks openat2(), and the process that reads files of strangers may not call it (proc/reader_rights.hpp). On failure,
// errno is that of openat(), EPERM or ELOOP. EPERM: the walker's user may not search a folder. ELOOP: the path has more
// than 40 links (the limit of Linux), or a link in a file system of the kernel.
Descriptor open_within(Descriptor root, std::string path, Walker& walker) {
  constexpr int kMostLinks = 40;
  // the root, and then each folder on the way from the root to the current folder
  std::vector<Place> folders(1);
  folders.front().file = std::move(root);
  if (::fstat(folders.front().file.get(), &folders.front().status) != 0) return {};
  int links = 0;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    if (S_ISDIR(folders.back().status.st_mode) && !walker.may_search(folders.back().status)) {
      errno = EPERM;
      return {};
    }
    if (name == ".") continue;
    if (name == "..") {
      if (folders.size() > 1) folders.pop_back();
      continue;
    }
    Place next{Descriptor(::openat(folders.back().file.get(), name.c_str(), kPlace | O_NOFOLLOW))};
    if (!next.file || ::fstat(next.file.get(), &next.status) != 0) return {};
    if (!S_ISLNK(next.status.st_mode)) {
      folders.push_back(std::move(next));
      continue;
    }
    if (++links > kMostLinks || is_of_kernel(next.file.get())) {
      errno = ELOOP;
      return {};
    }
    walker.note_link(next.status);
    const std::string target = read_link_text(next.file.get());
    if (target.empty()) return {};
    if (target.front() == '/') folders.resize(1);
    path = target + "/" + (at < path.size() ? path.substr(at) : "");
    at = 0;
  }
  if (folders.size() > 1) return std::move(folders.back().file);
  return Descriptor(::openat(folders.front().file.get(), ".", kPlace));
}

// Returns the path with which the kernel names the open file.
std::string kernel_path(int fd) {
  std::array<char, PATH_MAX> text;
  const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

// Opens only a reference to the file (O_PATH), which has no effect on the file itself.
Descriptor open_place(const std::string& path, Walker& walker) {
  std::string root;
  std::string rest;
  if (split_at_root(path, root, rest)) {
    Descriptor folder(::open(root.c_str(), kPlace | O_DIRECTORY));
    if (!folder) return {};
    return open_within(std::move(folder), rest, walker);
  }
  Descriptor direct(::open(path.c_str(), kPlace));
  // A path such as /proc/17/exe leads to a file that a process has opened.
  if (!direct || path.starts_with("/proc/")) return direct;
  const std::string found = kernel_path(direct.get());
  // If /proc is not mounted, this process cannot read the file of another process either.
  if (found.empty() || (found == path && !walker.is_checked())) return direct;
  std::array<char, PATH_MAX> here;
  std::string whole = path;
  if (!path.starts_with('/')) {
    if (::getcwd(here.data(), here.size()) == nullptr || here[0] != '/') return direct;
    whole = std::string(here.data()) + "/" + path;
  }
  Descriptor top(::open("/", kPlace | O_DIRECTORY));
  if (!top) return {};
  Descriptor walked = open_within(std::move(top), whole, walker);
  // open_within() refuses links in /proc. But a link of root in /dev, such as /dev/stdin, may lead to such a link.
  return walked || errno != ELOOP || walker.is_checked() ? std::move(walked) : std::move(direct);
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Opens the file of the O_PATH descriptor `place` for reading. `status`: the stat(2) of this file.
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

// True for /proc/17/exe and a path like /proc/17/map_files/7f00-7f10. Such a link always leads to the mapped file. On
// overlayfs and btrfs, the numbers in /proc/PID/maps do not show which file is mapped.
bool is_mapped_link(std::string_view path) {
  constexpr std::string_view kProc = "/proc/";
  if (!path.starts_with(kProc)) return false;
  const std::size_t end = path.find_first_not_of("0123456789", kProc.size());
  if (end == std::string_view::npos || end == kProc.size()) return false;
  const std::string_view entry = path.substr(end);
  constexpr std::string_view kMapped = "/map_files/";
  return entry == "/exe" || (entry.starts_with(kMapped) && entry.find('/', kMapped.size()) == std::string_view::npos);
}

// `owner`: see open_for(); null: the rights of this process decide. `mapped`: a file that may be opened in any case.
Descriptor open_checked(const std::string& path, const Owner* owner, const MappedFile* mapped) {
  if (is_dead_path(path)) {
    errno = ETIMEDOUT;
    return {};
  }
  const bool is_limited = ::geteuid() == 0 && owner != nullptr && owner->uid != 0;
  struct stat status {};
  Walker walker(nullptr);
  Descriptor place;
  if (mapped != nullptr || !is_limited) {
    place = open_place(path, walker);
    if (place && ::fstat(place.get(), &status) != 0) return {};
  }
  const auto has_numbers = [&] {
    return status.st_ino == mapped->inode && major(status.st_dev) == mapped->major &&
           minor(status.st_dev) == mapped->minor;
  };
  const bool is_it = place && mapped != nullptr && (is_mapped_link(path) || has_numbers());
  if (is_limited && !is_it) {
    walker = Walker(owner);
    place = open_place(path, walker);
    if (place && ::fstat(place.get(), &status) != 0) return {};
  }
  if (!place) return {};
  if (!S_ISREG(status.st_mode) || is_of_kernel(place.get())) {
    errno = EINVAL;
    return {};
  }
  if (!is_it && !walker.may_read(status)) {
    errno = EPERM;
    return {};
  }
  return Descriptor(open_again(place.get(), path, status));
}

// Opens the file in this process. If this process lacks the right to open the file, asks the opener (opener.hpp).
Descriptor open_or_ask(const std::string& path, const Owner* owner, const MappedFile* mapped) {
  Descriptor file = open_checked(path, owner, mapped);
  if (file || !may_help(errno)) return file;
  Request request;
  request.path = path;
  if (owner != nullptr) request.owner = *owner;
  if (mapped != nullptr) request.mapped = *mapped;
  Reply reply = ask_opener(request);
  struct stat status {};
  if (reply.file && ::fstat(reply.file.get(), &status) != 0) {
    request.number = 1;
    reply = ask_opener(request);
  }
  errno = reply.error;
  return std::move(reply.file);
}

}  // namespace

Descriptor open_regular(const std::string& path) { return open_or_ask(path, nullptr, nullptr); }

Descriptor open_for(const Owner& owner, const std::string& path) { return open_or_ask(path, &owner, nullptr); }

Descriptor open_mapped(const Owner& owner, const std::string& path, const std::optional<MappedFile>& mapped) {
  if (mapped && is_dead_device(fmt::format("{:02x}:{:02x}", mapped->major, mapped->minor))) {
    errno = ETIMEDOUT;
    return {};
  }
  return open_or_ask(path, &owner, mapped ? &*mapped : nullptr);
}

std::string reason_of(int error) {
  switch (error) {
    case EINVAL: return "not a regular file";
    case ETIMEDOUT: return "its file system does not answer";
    case EPERM: return "another user names this file, but may not read the file";
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

Result<OwnedText> read_text(const std::string& path, std::uint64_t limit) {
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
  return OwnedText{std::move(text), {status.st_uid, status.st_gid, {}}};
}

}  // namespace forksight::files
