#include "segment_memory.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

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

// Returns the sum of the numbers in the lines with these names. Each line of the file, for example memory.stat, has a
// name and a number.
std::uint64_t sum_of(const std::string& path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  std::uint64_t sum = 0;
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    if (std::ranges::find(names, name) != names.end()) sum += value;
  }
  return sum;
}

unsigned long long number(std::uint64_t value) { return static_cast<unsigned long long>(value); }

// A control group of this process that counts memory, and the names of its files. In version 1, a limit that was never
// set is a number near 2^63.
struct memory_group {
  std::string folder;
  bool is_version_1 = false;

  const char* limit_name() const { return is_version_1 ? "memory.limit_in_bytes" : "memory.max"; }
  const char* used_name() const { return is_version_1 ? "memory.usage_in_bytes" : "memory.current"; }
  // Returns how many bytes the kernel can take back before it reports a lack of memory. These are the page cache
  // without shared memory and locked pages, and in version 2 also caches of the kernel.
  std::uint64_t reclaimable() const {
    const std::string path = folder + "/memory.stat";
    return is_version_1 ? sum_of(path, {"total_inactive_file", "total_active_file"})
                        : sum_of(path, {"inactive_file", "active_file", "slab_reclaimable"});
  }
};

constexpr std::string_view kMounts = "/sys/fs/cgroup";

// True if the list "cpu,memory" contains "memory".
bool has_memory(std::string_view controllers) {
  const std::string list = "," + std::string(controllers) + ",";
  return list.find(",memory,") != std::string::npos;
}

// Returns the control groups of this process that may limit its memory: one of version 1, one of version 2, or both. A
// line of /proc/self/cgroup is "5:cpu,memory:/group" in version 1, and "0::/group" in version 2. In a container, "/"
// may be the root of a cgroup namespace, which may have a limit. The real root has no files with limits.
std::vector<memory_group> memory_groups() {
  std::vector<memory_group> found;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool is_version_1 = has_memory(controllers);
    if (!is_version_1 && !line.starts_with("0::")) continue;
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    found.push_back({std::string(kMounts) + (is_version_1 ? "/memory" : "") + group, is_version_1});
  }
  return found;
}

// Checks the group and every group above it, because each of them may have a limit.
result<void> check_up_to_root(memory_group group, std::uint64_t bytes) {
  const std::size_t root = kMounts.size() + (group.is_version_1 ? std::strlen("/memory") : 0);
  for (; group.folder.size() >= root; group.folder.resize(group.folder.rfind('/'))) {
    const std::string limit = line_of(group.folder + "/" + group.limit_name());
    const std::string used = line_of(group.folder + "/" + group.used_name());
    if (limit.empty() || limit == "max" || used.empty()) continue;
    const std::uint64_t most = std::strtoull(limit.c_str(), nullptr, 10);
    const std::uint64_t all = std::strtoull(used.c_str(), nullptr, 10);
    if (all + bytes <= most) continue;
    // The usage and memory.stat are read one after the other, so reclaimable() may be more than `all`.
    const std::uint64_t now = all - std::min(all, group.reclaimable());
    if (now + bytes <= most) continue;
    return failure(errc::cgroup_limit,
                   "segment: needs %llu bytes, but control group %s has only %llu left of %llu (%s): raise that limit, "
                   "or ask for fewer or smaller buffers",
                   number(bytes), group.folder.c_str(), number(most > now ? most - now : 0), number(most),
                   group.limit_name());
  }
  return {};
}

}  // namespace

result<void> check_control_group(std::uint64_t bytes) {
  for (memory_group& group : memory_groups()) {
    if (auto room = check_up_to_root(std::move(group), bytes); !room) return room;
  }
  return {};
}

result<void> allocate(int fd, std::uint64_t bytes, const std::string& where) {
  // If the file became larger than this limit, the kernel would send SIGXFSZ, which ends the process.
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && bytes > most.rlim_cur) {
    return failure(
        errc::no_space,
        "segment: needs %llu bytes, but this process may make files of at most %llu bytes (RLIMIT_FSIZE): raise "
        "it with ulimit -f, or ask for fewer or smaller buffers",
        number(bytes), number(most.rlim_cur));
  }
  int outcome = 0;
  // posix_fallocate() returns the error number, and does not set errno.
  do {
    outcome = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (outcome == EINTR);
  if (outcome == 0) return {};
  if (outcome != ENOSPC && outcome != ENOMEM && outcome != EFBIG) {
    return failed_call(outcome, "segment: %s: posix_fallocate of %llu bytes", where.c_str(), number(bytes));
  }
  struct statvfs file_system {};
  error why = failure(errc::no_space, "segment: needs %llu bytes, but ", number(bytes));
  why.sys_errno = outcome;
  if (fstatvfs(fd, &file_system) == 0 && file_system.f_blocks != 0) {
    why.text += failure(errc::no_space, "the file system of %s has only %llu free of %llu", where.c_str(),
                        number(std::uint64_t{file_system.f_bavail} * file_system.f_frsize),
                        number(std::uint64_t{file_system.f_blocks} * file_system.f_frsize))
                    .text;
  } else {
    why.text += "the kernel cannot allocate so much memory";
  }
  why.text += where.starts_with("/dev/shm")
                  ? ": make /dev/shm larger (in a container by --shm-size), or use strategy::memfd, which does not "
                    "need it"
                  : ": ask for fewer or smaller buffers";
  return why;
}

}  // namespace forksight::ipc::detail
