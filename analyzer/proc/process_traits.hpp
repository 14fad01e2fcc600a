// What a process is made of, as far as a proof depends on it.
//
// Asked of a thread that lives: a first thread that has ended has no memory and no descriptors any more while the
// others go on. /proc/TID works for threads too.
#pragma once

#include <cstdint>
#include <vector>

namespace forksight::proc {

// Is its program x86-64 code.
bool runs_x86_64(std::int32_t tid);

bool has_io_uring(std::int32_t tid);

// glibc is mapped, as a library: what else uses threads may have signals 32 and 33 for itself.
bool has_libc(std::int32_t tid);

enum class Sharing { kUnknown, kAlone, kShared };

// Looks through all processes for those that have the memory of this thread of `pid` but are others.
Sharing find_sharing(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers);

}  // namespace forksight::proc
