// File systems that do not answer: a network mount whose server is gone, or a FUSE mount whose process is stuck. A call
// for a file there may block for ever, and the kernel has no way to make such a call with a time limit. Other file
// systems answer, but too slowly. So a child
// process makes these calls (guard/child.hpp). If a call blocks, the file system is noted here as a dead place. The
// next child makes no calls for files there.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

namespace forksight::files {

// A mounted file system. The folder of the mount and the device number identify the file system.
struct DeadPlace {
  std::string folder;    // "": not known
  std::string device;    // as in /proc/PID/maps: "fe:01"; "": not known
  bool is_slow = false;  // each call returns, but all together they take too long

  // True for FUSE and network file systems, and for others that lie on no disk.
  bool is_without_disk() const { return device.starts_with("00:"); }
};

bool add_dead_place(DeadPlace place);  // false if the place is known already
bool has_dead_places();
// Returns a sentence for each place. The sentence says that the place does not answer, and what a report lacks for that
// reason.
std::vector<std::string> describe_dead_places();
bool is_dead_device(std::string_view device);  // as in /proc/PID/maps
// True if the path leads to a dead place. A path like /proc/17/fd/3, .../exe, .../cwd/x or .../root/usr/x counts as the
// path that it stands for. Makes no call that could block.
bool is_dead_path(std::string_view path);

// Returns the path for which a path below /proc/PID stands. Returns other paths as they are.
std::string resolve_proc_path(std::string_view path);

// Like stat(2). If the path leads to a dead place, fails with errno ETIMEDOUT. If this process has given up the rights
// for the call, asks the opener (opener.hpp).
int stat_living(const std::string& path, struct stat& status);

}  // namespace forksight::files
