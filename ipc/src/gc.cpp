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

namespace forksight::ipc {
namespace {

constexpr std::string_view kPrefix = "forksight-";

bool is_queue_name(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + 32) return false;
  return name.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string_view::npos;
}

void look_at(const std::string& name, bool dry_run, gc_report& report) {
  const detail::descriptor file(shm_open(name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0));
  if (!file) {
    if (errno != ENOENT) report.skipped.push_back(name + ": " + std::strerror(errno));
    return;
  }
  struct stat about {};
  if (fstat(file.get(), &about) != 0 || about.st_uid != geteuid()) {
    report.skipped.push_back(name + ": belongs to another user");
    return;
  }
  // A process that creates or attaches a named queue takes this lock shared. Afterwards it checks that the name still
  // exists.
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    report.in_use.push_back(name);
    return;
  }
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
    if (is_queue_name(entry->d_name)) names.push_back(std::string("/") + entry->d_name);
  }
  std::ranges::sort(names);
  gc_report report;
  for (const std::string& name : names) look_at(name, dry_run, report);
  return report;
}

result<bool> remove_when_unused(const std::string& name) {
  if (!name.starts_with('/') || !is_queue_name(std::string_view(name).substr(1))) {
    return detail::failure(errc::bad_option, "%s: is no name of a queue: those are /forksight-<32 hex digits>",
                           name.c_str());
  }
  const detail::descriptor file(shm_open(name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0));
  if (!file) {
    if (errno == ENOENT) return detail::failure(errc::not_found, "%s: there is no queue of that name", name.c_str());
    return detail::failed_call(errno, "%s", name.c_str());
  }
  struct stat about {};
  if (fstat(file.get(), &about) != 0 || about.st_uid != geteuid()) {
    return detail::failure(errc::untrusted, "%s: belongs to another user", name.c_str());
  }
  // Each user of the queue holds the lock shared until it ends. A process that waits here does not keep new users out.
  while (flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return detail::failed_call(errno, "%s: flock", name.c_str());
  }
  if (fstat(file.get(), &about) != 0 || about.st_nlink == 0) return false;
  if (shm_unlink(name.c_str()) != 0) return detail::failed_call(errno, "%s", name.c_str());
  return true;
}

}  // namespace forksight::ipc
