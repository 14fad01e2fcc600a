// Properties of a process that a proof depends on.
//  `tid` must be a living thread: a first thread that has ended no longer has memory and descriptors, although the
//  other threads go on. /proc/TID works for threads, too.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "proc/mappings.hpp"

namespace forksight::proc {

// True if the program is x86-64 code.
bool runs_x86_64(std::int32_t tid);

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
  std::vector<std::int32_t> all_;
  // maps the pid of each process whose answer is known to the processes that share its memory
  std::map<std::int32_t, std::vector<std::int32_t>> found_;
};

}  // namespace forksight::proc
