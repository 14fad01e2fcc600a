#include "files/replace_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <utility>

namespace forksight::files {
namespace {

constexpr int kMaxLinks = 40;  // the limit of Linux

Error failure(int error) { return Error{std::strerror(error)}; }

bool is_stranger(uid_t owner) { return owner != 0 && owner != ::geteuid(); }

// True for a folder such as /tmp: everybody may create files there, and nobody may rename the files of others.
bool is_shared(const struct stat& folder) { return (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0; }

// Another user put the file at this place, and might use it to direct the output of the caller. Users other than root
// have only their own rights to lose. For them, only folders such as /tmp count: there they expect files of strangers.
// The kernel has the same rule (fs.protected_symlinks).
bool is_trap(const struct stat& file, const struct stat& folder) {
  return is_stranger(file.st_uid) && (::geteuid() == 0 || is_shared(folder));
}

// In /proc, links lead to open files, and such a file may have no name. Only the kernel can follow these links.
bool is_of_procfs(int fd) {
  struct statfs status {};
  return ::fstatfs(fd, &status) == 0 && status.f_type == static_cast<long>(PROC_SUPER_MAGIC);
}

// Returns the text of the symbolic link to which `link` (O_PATH) refers. On failure, returns "".
std::string text_of_link(int link) {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(link, "", text.data(), text.size());
  if (length <= 0 || static_cast<std::size_t>(length) >= text.size()) return {};
  return {text.data(), static_cast<std::size_t>(length)};
}

// Finds the place of a file, folder by folder. The last part of a path is not followed if it is a link.
class PlaceFinder {
 public:
  Result<OutputPlace> find(const std::string& path) {
    rest_ = path;
    if (path.empty()) return failure(ENOENT);
    if (!enter(AT_FDCWD, path.front() == '/' ? "/" : ".")) return failure(errno);
    return find_rest();
  }

  // `place` is that of a link. Finds the place of the file to which the link leads.
  Result<OutputPlace> find_target(OutputPlace place) {
    folder_ = std::move(place.folder);
    folder_status_ = place.folder_status;
    rest_.clear();
    if (!follow(place.file.get())) return failure(errno);
    return find_rest();
  }

 private:
  Result<OutputPlace> find_rest() {
    while (true) {
      const std::size_t start = rest_.find_first_not_of('/');
      if (start == std::string::npos) return failure(EISDIR);
      const std::size_t end = std::min(rest_.find('/', start), rest_.size());
      const std::string name = rest_.substr(start, end - start);
      rest_.erase(0, end);
      if (rest_.empty()) return open_last(name);
      // O_DIRECTORY makes the kernel mount a file system that is mounted on demand.
      if (enter(folder_.get(), name.c_str(), O_NOFOLLOW)) continue;
      if (errno != ENOTDIR && errno != ELOOP) return failure(errno);
      const Descriptor link(::openat(folder_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      struct stat status {};
      if (!link || ::fstat(link.get(), &status) != 0) return failure(errno);
      if (!S_ISLNK(status.st_mode)) return failure(ENOTDIR);
      if (is_of_procfs(link.get())) {
        if (!enter(folder_.get(), name.c_str())) return failure(errno);
        continue;
      }
      if (is_trap(status, folder_status_)) {
        return Error{
            fmt::format("its folder {} is a link of user {}, which forksight does not follow: name the folder to "
                        "which the link leads",
                        name, status.st_uid)};
      }
      if (!follow(link.get())) return failure(errno);
    }
  }

  Result<OutputPlace> open_last(const std::string& name) {
    if (name == "." || name == "..") return failure(EISDIR);
    OutputPlace place;
    place.name = name;
    place.file = Descriptor(::openat(folder_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!place.file && errno != ENOENT) return failure(errno);
    place.exists = static_cast<bool>(place.file);
    if (place.exists && ::fstat(place.file.get(), &place.status) != 0) return failure(errno);
    place.folder = std::move(folder_);
    place.folder_status = folder_status_;
    return place;
  }

  // On failure, errno is that of openat() or fstat(), and the current folder stays the same.
  bool enter(int from, const char* name, int flags = 0) {
    Descriptor folder(::openat(from, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags));
    struct stat status {};
    if (!folder || ::fstat(folder.get(), &status) != 0) return false;
    folder_ = std::move(folder);
    folder_status_ = status;
    return true;
  }

  // The current folder is that of the link. Puts the text of the link before the rest of the path.
  bool follow(int link) {
    std::string target = text_of_link(link);
    if (target.empty() || ++links_ > kMaxLinks) {
      errno = ELOOP;
      return false;
    }
    rest_.insert(0, target);
    return target.front() != '/' || enter(AT_FDCWD, "/");
  }

  std::string rest_;  // what is left of the path, relative to the current folder
  Descriptor folder_;
  struct stat folder_status_ {};
  int links_ = 0;
};

// Creates a file in the folder, under a name that does not exist yet.
Descriptor make_draft(const OutputPlace& place, unsigned mode, std::string& draft) {
  constexpr int kAttempts = 16;
  for (int i = 0; i < kAttempts; ++i) {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
      random = static_cast<std::uint64_t>(::getpid());
    draft = fmt::format(".{}.{:016x}", place.name.substr(0, 200), random + static_cast<std::uint64_t>(i));
    Descriptor file(
        ::openat(place.folder.get(), draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file || errno != EEXIST) return file;
  }
  return {};
}

// Gives the draft the name of the file. On failure, removes the draft and keeps errno.
bool put_draft_in_place(const OutputPlace& place, const std::string& draft) {
  if (::renameat(place.folder.get(), draft.c_str(), place.folder.get(), place.name.c_str()) == 0) return true;
  const int error = errno;
  ::unlinkat(place.folder.get(), draft.c_str(), 0);
  errno = error;
  return false;
}

// Opens the file to which `place.file` refers, even if another file has the name by now.
Descriptor reopen(const OutputPlace& place, int flags) {
  return Descriptor(::open(fmt::format("/proc/self/fd/{}", place.file.get()).c_str(), flags | O_NOCTTY | O_CLOEXEC));
}

// Opens a regular file that write() cannot replace.
Result<Descriptor> open_in_place(const OutputPlace& place) {
  const struct stat& folder = place.folder_status;
  if (place.status.st_uid != ::geteuid() && is_shared(folder)) {
    return Error{fmt::format("user {} owns it, in a folder that everybody may write to", place.status.st_uid)};
  }
  // A user may be able to give a file of another user a second name (fs.protected_hardlinks is 0).
  const bool is_folder_of_stranger = is_stranger(folder.st_uid) || (folder.st_mode & S_IWOTH) != 0;
  if (::geteuid() == 0 && is_folder_of_stranger && place.status.st_nlink > 1) {
    return Error{"it has several names, and another user may write to its folder"};
  }
  Descriptor file = reopen(place, O_WRONLY | O_NONBLOCK);
  if (!file) return failure(errno);
  return file;
}

// True if a later attempt may succeed, when the disk has room again.
bool is_of_disk(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO; }

// Creates a draft that has the mode, the owner and the group of the old file. If there is no old file, the mode is 0666
// less the umask. On failure there is no draft, and errno has the reason.
Descriptor make_like_old(const OutputPlace& place, std::string& draft) {
  constexpr unsigned kPrivate = 0600;  // the mode until the new file has the owner of the old one
  Descriptor file = make_draft(place, place.exists ? kPrivate : 0666U, draft);
  if (!file || !place.exists) return file;
  const struct stat& old = place.status;
  const bool is_own = old.st_uid == ::geteuid() && old.st_gid == ::getegid();
  if ((is_own || ::fchown(file.get(), old.st_uid, old.st_gid) == 0) && ::fchmod(file.get(), old.st_mode & 0777U) == 0)
    return file;
  const int error = errno;
  ::unlinkat(place.folder.get(), draft.c_str(), 0);
  errno = error;
  return {};
}

// Writes the text into the draft, and gives the draft the name of the file. On failure removes the draft. Returns 0 or
// an errno.
int complete_draft(const OutputPlace& place, Descriptor file, const std::string& draft, std::string_view text) {
  int error = write_all(file.get(), text) ? 0 : errno;
  // A network file system may report only now that its disk is full.
  if (::close(file.release()) != 0 && errno != EINTR && error == 0) error = errno;
  if (error == 0) return put_draft_in_place(place, draft) ? 0 : errno;
  ::unlinkat(place.folder.get(), draft.c_str(), 0);
  return error;
}

// Opens a regular file. Finds out whether the folder allows a new file in its place.
Result<OutputFile> open_existing(OutputPlace place) {
  std::string draft;
  if (const Descriptor file = make_like_old(place, draft)) {
    ::unlinkat(place.folder.get(), draft.c_str(), 0);
    return OutputFile(std::move(place), false);
  }
  if (is_of_disk(errno)) return OutputFile(std::move(place), false);
  auto opened = open_in_place(place);
  if (!opened) return Error{opened.error()};
  return OutputFile(std::move(opened.value()), true);
}

// `file` is a new, empty file at this place.
Result<OutputFile> take_new(OutputPlace place, const Descriptor& file) {
  if (::fstat(file.get(), &place.status) != 0) return failure(errno);
  place.exists = true;
  place.file = {};
  return OutputFile(std::move(place), true);
}

// Replaces a link of another user by a file.
Result<OutputFile> replace_link(OutputPlace place) {
  std::string draft;
  const Descriptor file = make_draft(place, 0666, draft);
  if (file && put_draft_in_place(place, draft)) return take_new(std::move(place), file);
  return Error{fmt::format("it is a link of user {}, which forksight does not follow and cannot replace: {}",
                           place.status.st_uid, std::strerror(errno))};
}

Result<OutputFile> open_stream(const OutputPlace& place) {
  if (S_ISFIFO(place.status.st_mode) && is_trap(place.status, place.folder_status)) {
    return Error{
        fmt::format("it is a FIFO of user {}, and forksight would wait until that user reads it", place.status.st_uid)};
  }
  Descriptor file = reopen(place, O_WRONLY);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return failure(errno);
  return OutputFile(std::move(file), S_ISREG(status.st_mode));
}

// Opens the file behind a link of /proc.
Result<OutputFile> open_behind_link(const OutputPlace& place) {
  Descriptor file(::openat(place.folder.get(), place.name.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return failure(errno);
  return OutputFile(std::move(file), S_ISREG(status.st_mode));
}

Result<OutputFile> create_new(OutputPlace place) {
  const Descriptor file(::openat(place.folder.get(), place.name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0666));
  if (file) return take_new(std::move(place), file);
  if (is_of_disk(errno)) return OutputFile(std::move(place), false);
  return errno == EEXIST ? Error{"another program has just created it: try again"} : failure(errno);
}

// Writes a draft in the folder `place.folder`, and gives it the name `place.name`.
std::string replace_in_folder(const OutputPlace& place, std::string_view text, unsigned mode) {
  std::string draft;
  Descriptor file = make_draft(place, mode, draft);
  if (!file) return std::strerror(errno);
  const int error = complete_draft(place, std::move(file), draft, text);
  return error == 0 ? "" : std::strerror(error);
}

}  // namespace

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

int OutputFile::write(std::string_view text) {
  if (!is_regular_) return write_all(file_.get(), text) ? 0 : errno;
  return file_ ? write_in_place(text) : replace(text);
}

int OutputFile::replace(std::string_view text) {
  std::string draft;
  Descriptor file = make_like_old(place_, draft);
  const int error = file ? complete_draft(place_, std::move(file), draft, text) : errno;
  if (error == 0) {
    is_new_ = false;
    was_replaced_ = true;
    return 0;
  }
  if (is_new_) {
    struct stat now {};
    const bool is_ours = ::fstatat(place_.folder.get(), place_.name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
                         now.st_dev == place_.status.st_dev && now.st_ino == place_.status.st_ino;
    if (is_ours) ::unlinkat(place_.folder.get(), place_.name.c_str(), 0);
    is_new_ = false;
  }
  if (is_of_disk(error) || was_replaced_ || !place_.file) return error;
  // The file itself is mounted at this place, or the folder allows no new files any more.
  auto opened = open_in_place(place_);
  if (!opened) return error;
  file_ = std::move(opened.value());
  return write_in_place(text);
}

int OutputFile::write_in_place(std::string_view text) const {
  const bool is_empty = ::lseek(file_.get(), 0, SEEK_SET) == 0 && ::ftruncate(file_.get(), 0) == 0;
  return is_empty && write_all(file_.get(), text) ? 0 : errno;
}

Result<OutputFile> open_output(const std::string& path) {
  PlaceFinder finder;
  auto place = finder.find(path);
  while (place && place->exists && S_ISLNK(place->status.st_mode)) {
    if (is_of_procfs(place->file.get())) return open_behind_link(place.value());
    if (is_stranger(place->status.st_uid)) return replace_link(std::move(place.value()));
    place = finder.find_target(std::move(place.value()));
  }
  if (!place) return Error{place.error()};
  if (!place->exists) return create_new(std::move(place.value()));
  if (S_ISDIR(place->status.st_mode)) return failure(EISDIR);
  return S_ISREG(place->status.st_mode) ? open_existing(std::move(place.value())) : open_stream(place.value());
}

std::string write_output(const std::string& path, std::string_view text) {
  auto opened = open_output(path);
  if (!opened) return opened.error();
  const int error = opened->write(text);
  return error == 0 ? "" : std::strerror(error);
}

std::string replace_file(const std::string& path, std::string_view text, unsigned mode) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  OutputPlace place;
  place.name = path.substr(slash + 1);  // if there is no slash, npos + 1 is 0
  place.folder = Descriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return place.folder ? replace_in_folder(place, text, mode) : std::strerror(errno);
}

std::string replace_file(int folder, const std::string& name, std::string_view text, unsigned mode) {
  OutputPlace place;
  place.name = name;
  place.folder = Descriptor(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  return place.folder ? replace_in_folder(place, text, mode) : std::strerror(errno);
}

}  // namespace forksight::files
