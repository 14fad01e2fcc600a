#include "session/run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <system_error>
#include <vector>

#include "collect/run_log.hpp"
#include "forksight/trace/format.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

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
  const std::string name = name_of_now();
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    // The ranks of one job on several machines may use the same folder, and two ranks may have the same pid in the same
    // second.
    const std::string unique = attempt == 0 ? name : fmt::format("{}-{}", name, attempt);
    if (::mkdir((root / unique).c_str(), kOwnerOnly) == 0) {
      RunFolder folder;
      folder.path_ = root / unique;
      folder.shown_ = shown / unique;
      folder.root_ = root;
      folder.lock();
      if (!existed) folder.made_out_ = root;
      return folder;
    }
    if (errno != EEXIST) return fail(errno);
  }
  return fail(EEXIST);
}

Result<RunFolder> RunFolder::make_private() {
  const char* const place = std::getenv("TMPDIR");
  std::vector<std::string> places{"/tmp", "/var/tmp", "/dev/shm"};
  if (place != nullptr && *place == '/') places.insert(places.begin(), place);
  std::vector<std::string> problems;
  for (const std::string& one : places) {
    std::string name = one + "/forksight-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      problems.push_back(fmt::format("{} ({})", one, std::strerror(errno)));
      continue;
    }
    RunFolder folder;
    folder.path_ = name;
    folder.shown_ = name;
    return folder;
  }
  return Error{
      fmt::format("no folder for the traces can be made in {}; choose one with --out", fmt::join(problems, ", "))};
}

void RunFolder::lock() {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  // flock() fails on a file system without locks. Then only the environment of the processes of the run shows that the
  // folder is in use.
  ::flock(fd, LOCK_SH | LOCK_NB);
  lock_ = std::shared_ptr<const int>(new int(fd), [](const int* held) {
    ::close(*held);
    delete held;
  });
}

bool RunFolder::has_traces() const {
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == trace::kFileSuffix) return true;
  }
  return false;
}

bool RunFolder::has_files() const {
  std::error_code error;
  const fs::directory_iterator first(path_, error);
  return !error && first != fs::directory_iterator();
}

void RunFolder::remove_traces() const {
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == trace::kFileSuffix) ::unlink(entry->path().c_str());
  }
}

void RunFolder::remove_if_empty() const {
  if (has_traces()) return;
  ::unlink((path_ / collect::kRunLogFile).c_str());
  // rmdir does not remove a folder that is not empty, so files of other programs stay.
  if (::rmdir(path_.c_str()) == 0 && !made_out_.empty()) ::rmdir(made_out_.c_str());
}

}  // namespace forksight
