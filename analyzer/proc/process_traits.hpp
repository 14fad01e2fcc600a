// Properties of a process that a proof depends on.
//  `tid` must be a living thread: a first thread that has ended no longer has memory and descriptors, although the
//  other threads go on. /proc/TID works for threads, too.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "proc/mappings.hpp"

namespace forksight::proc {

// The program is x86-64 code.
bool runs_x86_64(std::int32_t tid);

// `mappings`: those of the process.
bool has_io_uring(std::int32_t tid, const std::vector<Mapping>& mappings);

// glibc is mapped, as a library. Other thread libraries may use signals 32 and 33 for themselves.
bool has_libc(const std::vector<Mapping>& mappings);

enum class Sharing { kUnknown, kAlone, kShared };

// Finds processes that share one memory without being threads of one process. The processes of this machine are listed
// when the object is made, and each pair of processes is compared once, so an object must not outlive one look at them.
class MemorySharers {
 public:
  MemorySharers();
  // Adds to `sharers` the others that share the memory of this thread of `pid`.
  Sharing find(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers);

 private:
  std::vector<std::int32_t> all_;
  std::map<std::int32_t, std::vector<std::int32_t>> found_;  // sharers by pid, of each process whose answer is known
};

}  // namespace forksight::proc
