// Mount namespaces for tests. A test enters such a namespace and mounts, for example, a /dev/shm of its own. Processes
// outside the namespace do not see these mounts. The test needs the superuser's rights or a user namespace. If it has
// neither, it fails, because it cannot test anything.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace forksight::ipc::test {

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) ADD_FAILURE() << path << ": " << std::strerror(errno);
}

inline bool enter_mount_namespace() {
  const auto user = std::to_string(getuid()), group = std::to_string(getgid());
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      ADD_FAILURE() << "neither a mount namespace nor a user namespace is permitted here (" << std::strerror(errno)
                    << "): run this test as the superuser, or with kernel.unprivileged_userns_clone=1";
      return false;
    }
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", user + " " + user + " 1");
    write_file("/proc/self/gid_map", group + " " + group + " 1");
  }
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) return true;
  ADD_FAILURE() << "a private /: " << std::strerror(errno);
  return false;
}

inline bool mount_memory(const char* where, const char* options) {
  if (mount("forksight-test", where, "tmpfs", 0, options) == 0) return true;
  ADD_FAILURE() << "a tmpfs at " << where << ": " << std::strerror(errno);
  return false;
}

inline std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> found;
  for (const auto& one : std::filesystem::directory_iterator(folder)) found.push_back(one.path().filename());
  return found;
}

// The numbers of open descriptors, of mappings, and of names in /dev/shm. A test compares them before and after a call,
// to see that the call leaves nothing behind.
struct holdings {
  std::size_t descriptors = 0, mappings = 0, names = 0;
  static holdings now() {
    holdings found;
    // The descriptor through which the folder is read does not count.
    found.descriptors = names_in("/proc/self/fd").size() - 1;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++found.mappings;
    found.names = names_in("/dev/shm").size();
    return found;
  }
  bool operator==(const holdings&) const = default;
};

}  // namespace forksight::ipc::test
