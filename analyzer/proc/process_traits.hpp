// Properties of a process that a proof depends on.
//  `tid` must be a living thread: a first thread that has ended no longer has memory and descriptors, although the
//  other threads go on. /proc/TID works for threads, too.
#pragma once

#include <cstdint>
#include <vector>

namespace forksight::proc {

// The program is x86-64 code.
bool runs_x86_64(std::int32_t tid);

bool has_io_uring(std::int32_t tid);

// glibc is mapped, as a library. Other thread libraries may use signals 32 and 33 for themselves.
bool has_libc(std::int32_t tid);

enum class Sharing { kUnknown, kAlone, kShared };

// Searches all processes for others that share the memory of this thread of `pid`.
Sharing find_sharing(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers);

}  // namespace forksight::proc
