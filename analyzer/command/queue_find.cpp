#include "command/queue_find.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "files/open_file.hpp"
#include "files/opener.hpp"
#include "proc/own_process.hpp"
#include "proc/proc_fs.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

ipc::error failure(ipc::errc code, std::string text) { return {code, 0, 0, std::move(text)}; }

ipc::error not_opened(const fs::path& link) {
  return failure(ipc::errc::not_found, fmt::format("{}: {}", link.string(), files::reason_of(errno)));
}

ipc::result<ipc::snapshot> look_behind(const fs::path& link) {
  // open_regular() refuses files that are not regular. The path may name a FIFO, and open() would wait there for a
  // writer.
  const files::Descriptor file = files::open_regular(link.string());
  if (!file) return not_opened(link);
  return ipc::inspect(file.get(), proc::caller());
}

ipc::result<ipc::snapshot> look_at_name(const std::string& name) {
  struct stat status {};
  const bool is_there = ::lstat(("/dev/shm" + name).c_str(), &status) == 0;
  // shm_open() would open a FIFO without waiting for its other end, but the process at the other end would notice that
  // the FIFO was opened.
  if (is_there && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))) {
    return failure(ipc::errc::untrusted, fmt::format("{}: {}", name, files::reason_of(EINVAL)));
  }
  // A process that has given up its user (guard/child.hpp) may not open the file. look_behind() asks another process to
  // open it.
  if (is_there && S_ISREG(status.st_mode) && files::has_opener()) return look_behind("/dev/shm" + name);
  return ipc::inspect(name);
}

bool is_pid(const std::string& what) {
  return !what.empty() && what.find_first_not_of("0123456789") == std::string::npos;
}

struct FoundQueue {
  fs::path link;
  ipc::snapshot seen;
};

// Returns the descriptors of a process that lead to queues, one for each queue.
ipc::result<std::vector<FoundQueue>> queues_of(const std::string& pid) {
  const std::string folder = "/proc/" + pid + "/fd";
  const proc::ListedLinks listed = proc::read_links(folder);
  if (listed.outcome != proc::ReadOutcome::kOk) {
    const bool is_gone = listed.outcome == proc::ReadOutcome::kGone;
    return failure(ipc::errc::not_found, fmt::format("{}: its descriptors cannot be read: {}", pid,
                                                     is_gone ? "there is no such process" : std::strerror(EACCES)));
  }
  std::vector<FoundQueue> found;
  std::set<std::string> ids;
  std::string why;
  for (const auto& [fd, target] : listed.links) {
    if (!ipc::is_queue_file(target)) continue;
    const fs::path link = fmt::format("{}/{}", folder, fd);
    auto seen = look_behind(link);
    if (!seen) {
      why = seen.error().text;
    } else if (ids.insert(seen->id).second) {
      found.push_back({link, std::move(seen).value()});
    }
  }
  if (!found.empty()) return found;
  return failure(ipc::errc::not_found,
                 why.empty() ? fmt::format("{}: has no queue open", pid) : fmt::format("{}: {}", pid, why));
}

// `link` is in a folder such as /proc/PID/fd. Searches this folder for a descriptor of the read-only payload with this
// inode. Returns the path of that descriptor; empty if there is none.
fs::path payload_beside(const fs::path& link, std::uint64_t inode) {
  std::error_code refused;
  for (const auto& entry : fs::directory_iterator(link.parent_path(), refused)) {
    const fs::path target = fs::read_symlink(entry.path(), refused);
    struct stat about {};
    if (refused || !target.string().starts_with("/memfd:forksight-payload")) continue;
    if (stat(entry.path().c_str(), &about) == 0 && about.st_ino == inode) return entry.path();
  }
  return {};
}

ipc::result<ipc::queue> attach_behind(const fs::path& link) {
  const files::Descriptor file = files::open_regular(link.string());
  if (!file) return not_opened(link);
  auto seen = ipc::inspect(file.get());
  if (!seen) return seen.error();
  // The descriptor refers to a regular file, so open() does not wait.
  const files::Descriptor writable(open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDWR | O_CLOEXEC));
  if (!writable) return not_opened(link);
  if (seen->payload_inode == 0) return ipc::queue::attach(writable.get(), ipc::role::caretaker);
  const files::Descriptor payload = files::open_regular(payload_beside(link, seen->payload_inode).string());
  return ipc::queue::attach(writable.get(), ipc::role::caretaker, payload.get());
}

}  // namespace

std::string queue_name(const std::string& name) {
  if (name.starts_with('/')) return name;
  return name.starts_with("forksight-") ? "/" + name : "/forksight-" + name;
}

ipc::result<std::vector<ipc::snapshot>> find_queues(const files::Reader& /*reader*/, const std::string& what) {
  std::vector<ipc::snapshot> all;
  if (is_pid(what)) {
    auto found = queues_of(what);
    if (!found) return found.error();
    for (FoundQueue& one : *found) all.push_back(std::move(one.seen));
    return all;
  }
  auto seen = what.starts_with("/proc/") ? look_behind(what) : look_at_name(queue_name(what));
  if (!seen) return seen.error();
  all.push_back(std::move(seen).value());
  return all;
}

ipc::result<std::vector<ipc::queue>> attach_queues(const std::string& what) {
  std::vector<ipc::queue> all;
  if (is_pid(what)) {
    auto found = queues_of(what);
    if (!found) return found.error();
    for (const FoundQueue& one : *found) {
      auto attached = attach_behind(one.link);
      if (!attached) return attached.error();
      all.push_back(std::move(attached).value());
    }
    return all;
  }
  auto attached =
      what.starts_with("/proc/") ? attach_behind(what) : ipc::queue::attach(queue_name(what), ipc::role::caretaker);
  if (!attached) return attached.error();
  all.push_back(std::move(attached).value());
  return all;
}

}  // namespace forksight
