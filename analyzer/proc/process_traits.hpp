// Properties of a process that a proof depends on.
//  `tid` must be a living thread: a first thread that has ended no longer has memory and descriptors, although the
//  other threads go on. /proc/TID works for threads, too.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "files/open_file.hpp"
#include "proc/mappings.hpp"

namespace forksight::proc {

// True if the program is x86-64 code. nullopt: neither its file nor its mappings could be read.
std::optional<bool> runs_x86_64(std::int32_t tid);

// The user as whom the process opens files. If that cannot be read, "nobody".
files::Owner owner_of(std::int32_t tid);

// True if the process has an io_uring. `mappings`: the mappings of the process.
bool has_io_uring(std::int32_t tid, const std::vector<Mapping>& mappings);

// True if glibc is mapped as a shared library. Other thread libraries may use signals 32 and 33 in another way.
bool has_libc(const std::vector<Mapping>& mappings);

enum class Sharing { kUnknown, kAlone, kShared };

// Finds processes that share one memory, although they are not threads of one process. The constructor lists the
// processes of this machine, and each pair of processes is compared only once. So use an object for one examination
// only.
class MemorySharers {
 public:
  MemorySharers();
  // Adds to `sharers` the other processes that share the memory of process `pid`. `tid`: a living thread of it. A
  // process that forksight has no right to compare is added, too, if it may share the memory.
  Sharing find(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers);

 private:
  // The largest size that the mapped memory of a process has ever had.
  struct Peak {
    bool is_readable = false;
    std::uint64_t kilobytes = 0;  // 0: the process has no memory
  };
  static Peak read_peak(std::int32_t tid);
  std::optional<bool> may_share(std::int32_t pid, std::int32_t tid, std::int32_t other);
  void read_peaks();

  std::vector<std::int32_t> all_;
  // The peaks of all processes, read three times, one process after the other. Empty until one is needed.
  std::array<std::map<std::int32_t, Peak>, 3> peaks_;
  // maps the pid of each process whose answer is known to the processes that share its memory
  std::map<std::int32_t, std::vector<std::int32_t>> found_;
};

}  // namespace forksight::proc
