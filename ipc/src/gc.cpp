#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "descriptor.hpp"
#include "failure.hpp"
#include "forksight/ipc/handover.hpp"
#include "names.hpp"

namespace forksight::ipc {
namespace {

// True if the file belongs to a queue. A file with a random name may be incomplete, because its creator was killed. A
// file with a chosen name is a complete queue, or it does not belong to this library.
bool is_ours(int fd, const std::string& name) { return detail::is_random_name(name) || detail::begins_as_queue(fd); }

detail::descriptor open_file(const std::string& name) {
  return detail::descriptor(shm_open(name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0));
}

void look_at(const std::string& name, bool dry_run, gc_report& report) {
  if (detail::is_special_file(name)) {
    report.skipped.push_back(name + ": is not a queue");
    return;
  }
  const detail::descriptor file = open_file(name);
  if (!file) {
    if (errno != ENOENT) report.skipped.push_back(name + ": " + std::strerror(errno));
    return;
  }
  struct stat about {};
  if (fstat(file.get(), &about) != 0 || about.st_uid != geteuid()) {
    report.skipped.push_back(name + ": belongs to another user");
    return;
  }
  if (!is_ours(file.get(), name)) {
    report.skipped.push_back(name + ": is not a queue");
    return;
  }
  // A process that creates a named queue, or attaches to a queue by its name, takes this lock in shared mode. After
  // that, the process checks that the name still exists.
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    report.in_use.push_back(name);
    return;
  }
  // By now the name may belong to another queue. Or the creator may have renamed the file from its random name to its
  // chosen name. While this process has the lock, no process removes or changes a name of this file.
  if (!detail::is_called(file.get(), name)) return;
  if (!dry_run && shm_unlink(name.c_str()) != 0) {
    report.skipped.push_back(name + ": " + std::strerror(errno));
    return;
  }
  report.removed.push_back(name);
}

}  // namespace

result<gc_report> gc(bool dry_run) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/dev/shm"), closedir);
  if (!folder) return detail::failed_call(errno, "/dev/shm");
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(folder.get())) {
    std::string name = std::string("/") + entry->d_name;
    if (detail::is_queue_name(name)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  gc_report report;
  for (const std::string& name : names) look_at(name, dry_run, report);
  return report;
}

result<bool> remove_when_unused(const std::string& name) {
  if (!detail::is_queue_name(name)) return detail::no_queue_name(name);
  if (detail::is_special_file(name)) return detail::failure(errc::untrusted, "%s: is not a queue", name.c_str());
  const detail::descriptor file = open_file(name);
  if (!file) {
    if (errno == ENOENT) return detail::failure(errc::not_found, "%s: there is no queue of that name", name.c_str());
    return detail::failed_call(errno, "%s", name.c_str());
  }
  struct stat about {};
  if (fstat(file.get(), &about) != 0 || about.st_uid != geteuid()) {
    return detail::failure(errc::untrusted, "%s: belongs to another user", name.c_str());
  }
  if (!is_ours(file.get(), name)) return detail::failure(errc::untrusted, "%s: is not a queue", name.c_str());
  // Each process that has the queue open holds the lock in shared mode. The kernel releases the lock when the process
  // closes the queue or ends. A process that waits here does not block new users of the queue.
  while (flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return detail::failed_call(errno, "%s: flock", name.c_str());
  }
  if (!detail::is_called(file.get(), name)) return false;
  if (shm_unlink(name.c_str()) != 0) return detail::failed_call(errno, "%s", name.c_str());
  return true;
}

}  // namespace forksight::ipc
