#include "session/keep.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "collect/run_log.hpp"
#include "files/dead_places.hpp"
#include "forksight/trace/header.hpp"
#include "proc/proc_fs.hpp"
#include "render/findings_json.hpp"
#include "render/json.hpp"
#include "session/job_report.hpp"
#include "session/outside_file.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLogBytes = 64U << 20U;
constexpr std::uint64_t kBlockBytes = 512;  // the unit of st_blocks in stat(2)
constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kOpenFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Identifies a folder by its device and inode, whatever path leads to it.
using FolderKey = std::pair<dev_t, ino_t>;

struct OldRun {
  std::string name;
  FolderKey folder;
  timespec changed{};
  std::uint64_t bytes = 0;
  std::vector<std::string> files;
  bool has_rank = false;
};

// Returns the names in the folder; nullopt if the folder could not be read completely.
std::optional<std::vector<std::string>> list_names(int folder) {
  const int fd = ::openat(folder, ".", kOpenFolder);
  DIR* const listing = fd < 0 ? nullptr : ::fdopendir(fd);
  if (listing == nullptr) {
    if (fd >= 0) ::close(fd);
    return std::nullopt;
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(listing);
  return names;
}

std::string read_start(int folder, const std::string& name, std::size_t most) {
  const Descriptor file(::openat(folder, name.c_str(), kOpenFile));
  std::string text;
  std::string piece(std::size_t{1} << 16U, '\0');
  while (file && text.size() < most) {
    const ssize_t got = ::read(file.get(), piece.data(), std::min(piece.size(), most - text.size()));
    if (got <= 0) break;
    text.append(piece, 0, static_cast<std::size_t>(got));
  }
  return text;
}

// True if the file is a trace that forksight wrote on this machine.
bool take_trace(int folder, const std::string& name, OldRun& run) {
  const std::string text = read_start(folder, name, sizeof(trace::TraceHeader));
  if (text.size() != sizeof(trace::TraceHeader)) return false;
  const auto value = [&]<class Value>(std::size_t offset, Value& out) {
    std::memcpy(&out, text.data() + offset, sizeof out);
  };
  std::uint64_t magic = 0;
  std::int32_t rank = -1;
  value(offsetof(trace::TraceHeader, magic), magic);
  value(offsetof(trace::TraceHeader, rank), rank);
  run.has_rank = run.has_rank || rank >= 0;
  const char* const host = text.data() + offsetof(trace::TraceHeader, host);
  const std::string_view writer(host, ::strnlen(host, sizeof trace::TraceHeader::host));
  return magic == trace::kMagic && writer == proc::host_name();
}

bool take_log(int folder, const std::string& name) {
  const auto log = collect::parse_run_log(read_start(folder, name, kMostLogBytes));
  return log && log->host == proc::host_name();
}

bool take_outside(int folder, const std::string& name) {
  return static_cast<bool>(parse_outside(read_start(folder, name, kMostLogBytes)));
}

bool take_report(int folder, const std::string& name) {
  return static_cast<bool>(render::read_findings(render::kReportSchema, read_start(folder, name, kMostLogBytes)));
}

// True if each file in the folder is of a kind that forksight writes, and at least one is a trace or a run.json.
bool take_files(int folder, OldRun& run) {
  const auto names = list_names(folder);
  if (!names) return false;
  bool is_marked = false;
  for (const std::string& name : *names) {
    struct stat status {};
    const bool is_file = ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
    if (!is_file || status.st_uid != ::geteuid()) return false;
    const bool is_mark = name == collect::kRunLogFile
                             ? take_log(folder, name)
                             : name.ends_with(trace::kFileSuffix) && take_trace(folder, name, run);
    const bool is_document =
        (name == kOutsideFile && take_outside(folder, name)) || (name == kJobReportFile && take_report(folder, name));
    if (!is_mark && !is_document) return false;
    is_marked = is_marked || is_mark;
    run.bytes += static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes;
    run.files.push_back(name);
  }
  return is_marked;
}

// True if the name has the form that RunFolder uses: date, time, pid, and perhaps the number of an attempt.
bool has_name_of_run(const std::string& name) {
  std::vector<std::size_t> digits{0};
  for (const char c : name) {
    if (c == '-') {
      digits.push_back(0);
    } else if (c >= '0' && c <= '9') {
      ++digits.back();
    } else {
      return false;
    }
  }
  const bool has_parts = digits.size() == 3 || digits.size() == 4;
  return has_parts && digits[0] == 8 && digits[1] == 6 && std::ranges::find(digits, 0U) == digits.end();
}

std::optional<OldRun> read_run(int root, const std::string& name) {
  if (!has_name_of_run(name)) return std::nullopt;
  const Descriptor folder(::openat(root, name.c_str(), kOpenFolder));
  struct stat status {};
  if (!folder || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid()) return std::nullopt;
  OldRun run;
  run.name = name;
  run.folder = {status.st_dev, status.st_ino};
  run.changed = status.st_mtim;
  return take_files(folder.get(), run) ? std::optional(std::move(run)) : std::nullopt;
}

// The folders that FORKSIGHT_OUT names in the environments of this machine's processes. These processes write traces
// there now or later. Two processes may name one folder by different paths.
struct NamedFolders {
  std::set<std::string> paths;
  std::set<FolderKey> keys;
};

NamedFolders find_named_folders() {
  constexpr std::string_view kVariable = "FORKSIGHT_OUT=";
  NamedFolders folders;
  for (const std::int32_t pid : proc::list_numbers("/proc").numbers) {
    const std::string all = proc::read_environment(pid);
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = std::min(all.find('\0', at), all.size());
      const std::string_view entry = std::string_view(all).substr(at, end - at);
      at = end + 1;
      if (!entry.starts_with(kVariable)) continue;
      const std::string path(entry.substr(kVariable.size()));
      // The process may see other file systems than this one, for example in a container.
      struct stat status {};
      if (files::stat_living(proc::proc_path(pid, "root") + path, status) == 0)
        folders.keys.emplace(status.st_dev, status.st_ino);
      folders.paths.insert(path);
    }
  }
  return folders;
}

// Removes the folder of the run. Returns false if the run goes on, or if the folder is not the one that was examined.
// If another file has come into the folder since the examination, nothing is removed. If another file comes into the
// folder during the removal, that file and the folder stay.
bool remove_run(int root, const OldRun& run) {
  const Descriptor folder(::openat(root, run.name.c_str(), kOpenFolder));
  struct stat status {};
  if (!folder || ::fstat(folder.get(), &status) != 0 || FolderKey{status.st_dev, status.st_ino} != run.folder)
    return false;
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return false;
  OldRun now;
  if (!take_files(folder.get(), now)) return false;
  for (const std::string& file : now.files) ::unlinkat(folder.get(), file.c_str(), 0);
  return ::unlinkat(root, run.name.c_str(), AT_REMOVEDIR) == 0;
}

std::vector<OldRun> list_runs(int root) {
  std::vector<OldRun> runs;
  for (const std::string& name : list_names(root).value_or(std::vector<std::string>())) {
    if (auto run = read_run(root, name)) runs.push_back(std::move(*run));
  }
  std::ranges::sort(runs, [](const OldRun& one, const OldRun& other) {
    const auto key = [](const OldRun& run) { return std::tuple(run.changed.tv_sec, run.changed.tv_nsec, run.name); };
    return key(one) > key(other);
  });
  return runs;
}

std::optional<std::uint64_t> read_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && number > 0 && number < (std::uint64_t{1} << 32U) ? std::optional(number) : std::nullopt;
}

// Reads a number of runs or a size into `bounds`. Returns false if the word is neither a number nor a size, or if
// `bounds` already has that bound.
bool read_bound(std::string_view word, KeepBounds& bounds) {
  constexpr std::string_view kUnits = "KMG";
  const std::size_t unit = word.empty() ? std::string_view::npos : kUnits.find(word.back());
  const auto number = read_number(unit == std::string_view::npos ? word : word.substr(0, word.size() - 1));
  if (!number || (unit == std::string_view::npos ? bounds.runs.has_value() : bounds.bytes.has_value())) return false;
  if (unit == std::string_view::npos) {
    bounds.runs = *number;
  } else {
    bounds.bytes = *number << (10U * (unit + 1));
  }
  return true;
}

}  // namespace

Result<KeepBounds> read_keep_bounds(const std::string& text) {
  KeepBounds bounds;
  if (text == "all") return bounds;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (!read_bound(std::string_view(text).substr(at, end - at), bounds))
      return Error{
          fmt::format("\"{}\" is neither all, a number of runs, a size such as 200M, nor both with a comma", text)};
    at = end + 1;
  }
  return bounds;
}

std::vector<std::string> remove_old_runs(const fs::path& root, const fs::path& current, const KeepOptions& options) {
  std::vector<std::string> removed;
  if (!options.bounds.runs && !options.bounds.bytes) return removed;
  const Descriptor folder(::open(root.c_str(), kOpenFolder));
  if (!folder) return removed;
  std::size_t runs = 0;
  std::uint64_t bytes = 0;
  std::optional<NamedFolders> named;  // read only if a run is about to be removed
  for (const OldRun& run : list_runs(folder.get())) {
    ++runs;
    bytes += run.bytes;
    const bool is_beyond = runs > options.bounds.runs.value_or(runs) || bytes > options.bounds.bytes.value_or(bytes);
    if (!is_beyond || run.name == current.filename() || (run.has_rank && options.keeps_ranks)) continue;
    if (!named) named = find_named_folders();
    if (named->keys.contains(run.folder) || named->paths.contains((root / run.name).string())) continue;
    if (remove_run(folder.get(), run)) removed.push_back(run.name);
  }
  return removed;
}

}  // namespace forksight
