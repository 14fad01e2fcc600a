#include "room.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "failure.hpp"

namespace forksight::ipc::detail {
namespace {

// The first line of a small file; empty: the file does not exist.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The folder of the control group (version 2) of this process; empty: there is none.
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::")) continue;
    // In a container, "/" may be the root of a cgroup namespace, which may have a limit. The real root has no files
    // with limits.
    return "/sys/fs/cgroup" + (line == "0::/" ? std::string() : line.substr(3));
  }
  return {};
}

unsigned long long number(std::uint64_t value) { return static_cast<unsigned long long>(value); }

}  // namespace

result<void> check_control_group(std::uint64_t bytes) {
  // Every group from here up to the root may have a limit.
  for (std::string folder = control_group(); folder.size() >= std::strlen("/sys/fs/cgroup");
       folder.resize(folder.rfind('/'))) {
    const std::string limit = line_of(folder + "/memory.max");
    const std::string used = line_of(folder + "/memory.current");
    if (limit.empty() || limit == "max" || used.empty()) continue;
    const std::uint64_t most = std::strtoull(limit.c_str(), nullptr, 10);
    const std::uint64_t now = std::strtoull(used.c_str(), nullptr, 10);
    if (now + bytes > most) {
      return failure(
          errc::cgroup_limit,
          "segment: needs %llu bytes, control group %s has %llu left of %llu (memory.max): raise the limit or "
          "ask for fewer or smaller buffers",
          number(bytes), folder.c_str(), number(most > now ? most - now : 0), number(most));
    }
  }
  return {};
}

result<void> allocate(int fd, std::uint64_t bytes, const std::string& where) {
  int outcome = 0;
  // posix_fallocate() returns the error number, and does not set errno.
  do {
    outcome = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (outcome == EINTR);
  if (outcome == 0) return {};
  if (outcome != ENOSPC && outcome != ENOMEM && outcome != EFBIG) {
    return failed_call(outcome, "segment: %s: posix_fallocate of %llu bytes", where.c_str(), number(bytes));
  }
  struct statvfs room {};
  error why = failure(errc::no_space, "segment: needs %llu bytes, but %s", number(bytes), where.c_str());
  why.sys_errno = outcome;
  if (fstatvfs(fd, &room) == 0 && room.f_blocks != 0) {
    why.text += failure(errc::no_space, " has %llu free of %llu", number(std::uint64_t{room.f_bavail} * room.f_frsize),
                        number(std::uint64_t{room.f_blocks} * room.f_frsize))
                    .text;
  } else {
    why.text += " does not have that many free";
  }
  why.text += where.starts_with("/dev/shm")
                  ? ": in a container, --shm-size raises that limit; strategy memfd does not have it"
                  : ": ask for fewer or smaller buffers";
  return why;
}

}  // namespace forksight::ipc::detail
