#include "session/run_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "collect/run_log.hpp"
#include "files/replace_file.hpp"
#include "forksight/trace/format.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;
using files::Descriptor;

constexpr mode_t kOwnerOnly = 0700;
constexpr int kMaxAttempts = 100;

std::string name_of_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::string text(32, '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local));
  return fmt::format("{}-{}", text, ::getpid());
}

// Like mkdir -p; returns 0 or an errno.
int make_folders(const fs::path& folder) {
  if (::mkdir(folder.c_str(), kOwnerOnly) == 0) return 0;
  if (errno == ENOENT && folder.has_parent_path() && folder.parent_path() != folder) {
    const int error = make_folders(folder.parent_path());
    if (error != 0) return error;
    return ::mkdir(folder.c_str(), kOwnerOnly) == 0 || errno == EEXIST ? 0 : errno;
  }
  return errno == EEXIST ? 0 : errno;
}

// Returns the names in a folder; nothing if the folder cannot be read.
std::vector<std::string> list_entries(int folder) {
  std::vector<std::string> names;
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = fd < 0 ? nullptr : ::fdopendir(fd);
  if (listing == nullptr) {
    if (fd >= 0) ::close(fd);
    return names;
  }
  while (const dirent* entry = ::readdir(listing)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(listing);
  return names;
}

bool is_trace_name(const std::string& name) { return name.ends_with(trace::kFileSuffix); }

// True if the entry `name` of the folder `parent` is the folder to which `folder` refers.
bool leads_to(int folder, int parent, const std::string& name) {
  struct stat held {};
  struct stat named {};
  return ::fstat(folder, &held) == 0 && ::fstatat(parent, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

// Makes a file that is removed when it is closed.
Descriptor make_nameless(int folder) {
  constexpr mode_t kMode = 0600;
  Descriptor file(::openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kMode));
  if (file || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  const std::string name = fmt::format(".probe.{}", ::getpid());
  file = Descriptor(::openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (file) ::unlinkat(folder, name.c_str(), 0);
  return file;
}

// Makes a file in the folder and reserves its bytes, as the shim does for a new trace (preload/record/trace_file.cpp).
// The file is removed at once. Returns 0 or an errno.
int try_trace(int folder) {
  constexpr off_t kSmallest = 16 << 10;    // the shim makes no smaller trace
  constexpr rlim_t kSparse = 256U << 10U;  // the smallest trace on a file system that cannot reserve space
  const Descriptor file = make_nameless(folder);
  if (!file) return errno;
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(kSmallest)) return EFBIG;
  int result = 0;
  do {
    result = ::fallocate(file.get(), 0, 0, kSmallest);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) return errno;
  if (limit.rlim_cur < kSparse) return EFBIG;
  return files::write_all(file.get(), std::string(kSmallest, '\0')) ? 0 : errno;
}

}  // namespace

Result<RunFolder> RunFolder::make(const fs::path& out) {
  std::error_code ignored;
  fs::path shown = out;
  if (!shown.has_filename() && shown.has_parent_path()) shown = shown.parent_path();  // "dir/"
  const fs::path root = fs::absolute(shown, ignored);
  const auto fail = [&](int error) {
    return Error{fmt::format("{}: cannot be used for the traces: {}; choose another folder with --out", out.string(),
                             std::strerror(error))};
  };
  if (root.empty()) return fail(ENOENT);
  const bool existed = fs::exists(root, ignored);
  if (const int error = make_folders(root); error != 0) return fail(error);
  auto held = std::make_shared<Held>();
  held->parent = Descriptor(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!held->parent) return fail(errno);
  if (!existed) held->above = Descriptor(::openat(held->parent.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string name = name_of_now();
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    // The ranks of one job on several machines may use the same folder, and two ranks may have the same pid in the same
    // second.
    const std::string unique = attempt == 0 ? name : fmt::format("{}-{}", name, attempt);
    int error = ::mkdirat(held->parent.get(), unique.c_str(), kOwnerOnly) == 0 ? 0 : errno;
    if (error == 0) error = open_new(*held, unique);
    if (error == EEXIST) continue;
    if (error != 0) return fail(error);
    // The lock shows other forksight processes that the run goes on. CMD does not inherit it. flock() fails on a file
    // system without locks. Then only the environment of the processes of the run shows that the folder is in use.
    if (held->folder) ::flock(held->folder.get(), LOCK_SH | LOCK_NB);
    RunFolder folder;
    folder.path_ = root / unique;
    folder.shown_ = shown / unique;
    folder.root_ = root;
    folder.held_ = std::move(held);
    return folder;
  }
  return fail(EEXIST);
}

Result<RunFolder> RunFolder::make_private() {
  const char* const place = std::getenv("TMPDIR");
  std::vector<std::string> places{"/tmp", "/var/tmp", "/dev/shm"};
  if (place != nullptr && *place == '/') places.insert(places.begin(), place);
  std::vector<std::string> problems;
  for (const std::string& one : places) {
    auto held = std::make_shared<Held>();
    held->parent = Descriptor(::open(one.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    std::string name = one + "/forksight-XXXXXX";
    int error = ::mkdtemp(name.data()) == nullptr ? errno : 0;
    if (error == 0) error = open_new(*held, fs::path(name).filename());
    if (error != 0) {
      problems.push_back(fmt::format("{} ({})", one, std::strerror(error)));
      continue;
    }
    RunFolder folder;
    folder.path_ = name;
    folder.shown_ = name;
    folder.held_ = std::move(held);
    return folder;
  }
  return Error{
      fmt::format("no folder for the traces can be made in {}; choose one with --out", fmt::join(problems, ", "))};
}

int RunFolder::open_new(Held& held, const std::string& name) {
  held.folder = Descriptor(::openat(held.parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // With an unusual umask, forksight may not read the folder that it has made.
  if (!held.folder && errno == EACCES) return 0;
  // The owner of the parent has already removed the folder, or has put something else in its place.
  if (!held.folder && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return EEXIST;
  if (!held.folder) return errno;
  // A folder with files is not the one that was made: the owner of the parent has put it there.
  return list_entries(held.folder.get()).empty() ? 0 : EEXIST;
}

std::vector<std::string> RunFolder::list() const { return list_entries(fd()); }

bool RunFolder::is_in_place() const { return leads_to(fd(), held_->parent.get(), path_.filename()); }

bool RunFolder::has_traces() const { return std::ranges::any_of(list(), is_trace_name); }

bool RunFolder::has_files() const { return !list().empty(); }

void RunFolder::remove_traces() const {
  for (const std::string& name : list()) {
    if (is_trace_name(name)) ::unlinkat(fd(), name.c_str(), 0);
  }
}

void RunFolder::remove_if_empty() const {
  if (fd() < 0 || has_traces()) return;
  ::unlinkat(fd(), collect::kRunLogFile, 0);
  // A folder that is not empty is not removed, so files of other programs stay.
  const int parent = held_->parent.get();
  if (!is_in_place() || ::unlinkat(parent, path_.filename().c_str(), AT_REMOVEDIR) != 0 || !held_->above) return;
  if (leads_to(parent, held_->above.get(), root_.filename()))
    ::unlinkat(held_->above.get(), root_.filename().c_str(), AT_REMOVEDIR);
}

std::string RunFolder::find_lack_of_room() const {
  const int error = fd() < 0 ? 0 : try_trace(fd());
  if (error != ENOSPC && error != EDQUOT && error != EFBIG && error != EIO && error != EROFS) return "";
  return fmt::format("processes of this run may lack traces: {} takes no more data ({}{})", shown_.string(),
                     std::strerror(error), error == EFBIG ? "; see ulimit -f" : "");
}

}  // namespace forksight
