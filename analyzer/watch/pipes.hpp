// Who holds the other end of a pipe. A scan of the descriptors of every process that may be read: dear (a readlink a
// descriptor), so it is made only when everything else about a process says that it is stuck.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace forksight::watch {

struct PipeHolder {
  std::uint64_t inode = 0;
  std::int32_t pid = 0;
  bool reads = false;
  bool writes = false;
};

// The pipe behind a descriptor of a thread, 0 if it is none that only its holders can reach (a FIFO with a name can
// be opened by anybody).
std::uint64_t find_pipe(std::int32_t tid, std::int32_t fd);

// All holders of these pipes, one entry a process and pipe. Processes whose descriptors we may not read are left out; those
// among `must_read` that are alive and refuse are added to `refused`.
std::vector<PipeHolder> find_holders(const std::set<std::uint64_t>& inodes, const std::set<std::int32_t>& must_read,
                                     std::set<std::int32_t>& refused);

}  // namespace forksight::watch
