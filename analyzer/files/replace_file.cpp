#include "files/replace_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace forksight::files {
namespace {

constexpr int kMaxLinks = 16;

Error failure(int error) { return Error{std::strerror(error)}; }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Creates a file in the folder of `path`, under a name that does not exist yet.
Descriptor make_draft(const std::string& path, unsigned mode, std::string& name) {
  constexpr int kAttempts = 16;
  for (int i = 0; i < kAttempts; ++i) {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
      random = static_cast<std::uint64_t>(::getpid());
    const std::size_t slash = path.rfind('/') + 1;  // if there is no slash, npos + 1 is 0
    name = fmt::format("{}.{}.{:016x}", path.substr(0, slash), path.substr(slash, 200),
                       random + static_cast<std::uint64_t>(i));
    Descriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file || errno != EEXIST) return file;
  }
  return {};
}

// True for a folder such as /tmp: everybody may create files there, and nobody may rename the files of others.
bool is_shared_folder(const std::string& path) {
  struct stat status {};
  return ::stat(folder_of(path).c_str(), &status) == 0 && (status.st_mode & S_ISVTX) != 0 &&
         (status.st_mode & S_IWOTH) != 0;
}

// Empties the file at `path`, which must still be the file `seen`.
Result<OutputFile> empty_in_place(const std::string& path, const struct stat& seen) {
  if (seen.st_uid != ::geteuid() && is_shared_folder(path)) {
    return Error{fmt::format("user {} owns it, in a folder that everybody may write to", seen.st_uid)};
  }
  Descriptor file(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat now {};
  if (!file || ::fstat(file.get(), &now) != 0) return failure(errno);
  if (now.st_dev != seen.st_dev || now.st_ino != seen.st_ino) return Error{"another file took its place just now"};
  if (::ftruncate(file.get(), 0) != 0) return failure(errno);
  return OutputFile{std::move(file), true};
}

Result<OutputFile> replace_existing(const std::string& path, const struct stat& seen) {
  constexpr unsigned kPrivate = 0600;  // the mode until the new file has the owner of the old one
  std::string draft;
  Descriptor file = make_draft(path, kPrivate, draft);
  if (!file) return empty_in_place(path, seen);
  const bool is_own = seen.st_uid == ::geteuid() && seen.st_gid == ::getegid();
  const bool is_kept = (is_own || ::fchown(file.get(), seen.st_uid, seen.st_gid) == 0) &&
                       ::fchmod(file.get(), seen.st_mode & 0777U) == 0;
  if (is_kept && ::rename(draft.c_str(), path.c_str()) == 0) return OutputFile{std::move(file), true};
  ::unlink(draft.c_str());
  return empty_in_place(path, seen);
}

// Replaces a link of another user by a file.
Result<OutputFile> replace_link(const std::string& path, unsigned owner) {
  std::string draft;
  Descriptor file = make_draft(path, 0666, draft);
  if (file && ::rename(draft.c_str(), path.c_str()) == 0) return OutputFile{std::move(file), true};
  const int error = errno;
  if (file) ::unlink(draft.c_str());
  return Error{fmt::format("it is a link of user {}, which forksight does not follow, and which cannot be replaced: {}",
                           owner, std::strerror(error))};
}

Result<OutputFile> open_stream(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return failure(errno);
  return OutputFile{std::move(file), S_ISREG(status.st_mode)};
}

// Returns the path to which the link leads. If the target of the link is relative, the path begins with the folder of
// the link.
std::string target_of(const std::string& path) {
  std::array<char, 4096> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length <= 0 || static_cast<std::size_t>(length) >= target.size()) return {};
  const std::string text(target.data(), static_cast<std::size_t>(length));
  return text.starts_with('/') ? text : folder_of(path) + "/" + text;
}

Result<OutputFile> open_from(const std::string& path, int links) {
  struct stat seen {};
  if (::lstat(path.c_str(), &seen) != 0) {
    if (errno != ENOENT) return failure(errno);
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0666));
    if (file) return OutputFile{std::move(file), true};
    return errno == EEXIST && links > 0 ? open_from(path, links - 1) : Result<OutputFile>(failure(errno));
  }
  if (S_ISREG(seen.st_mode)) return replace_existing(path, seen);
  if (!S_ISLNK(seen.st_mode)) return open_stream(path);
  if (seen.st_uid != 0 && seen.st_uid != ::geteuid()) return replace_link(path, seen.st_uid);
  struct stat behind {};
  if (::stat(path.c_str(), &behind) == 0) {
    if (S_ISDIR(behind.st_mode)) return failure(EISDIR);
    // A link in /proc leads to a file that is already open. That file may have no other name. /dev/stdout leads to such
    // a link.
    struct statfs folder {};
    const bool is_open_file =
        ::statfs(folder_of(path).c_str(), &folder) == 0 && folder.f_type == static_cast<long>(PROC_SUPER_MAGIC);
    if (!S_ISREG(behind.st_mode) || is_open_file) return open_stream(path);
  }
  const std::string target = target_of(path);
  if (target.empty() || links == 0) return failure(ELOOP);
  return open_from(target, links - 1);
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

Result<OutputFile> open_output(const std::string& path) { return open_from(path, kMaxLinks); }

std::string replace_file(const std::string& path, std::string_view text, unsigned mode) {
  std::string draft;
  const Descriptor file = make_draft(path, mode, draft);
  if (!file) return std::strerror(errno);
  if (write_all(file.get(), text) && ::rename(draft.c_str(), path.c_str()) == 0) return "";
  const int error = errno;
  ::unlink(draft.c_str());
  return std::strerror(error);
}

}  // namespace forksight::files
