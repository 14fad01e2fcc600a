// Reads properties of a process that a proof depends on.
//  `tid` must be a living thread: a first thread that has ended no longer has memory and descriptors, although the
//  other threads go on. /proc/TID works for threads, too.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "files/open_file.hpp"
#include "proc/mappings.hpp"

namespace forksight::proc {

// True if the program is x86-64 code. nullopt: neither its file nor its mappings could be read.
std::optional<bool> runs_x86_64(std::int32_t tid);

// Returns the user with whose rights the process opens files; "nobody" if this user cannot be read.
files::Owner owner_of(std::int32_t tid);

// True if a process with these mappings has an io_uring. It may also have one of which only a descriptor is left.
bool has_io_uring(const std::vector<Mapping>& mappings);

// True if glibc is mapped as a shared library. Other thread libraries may use signals 32 and 33 in another way.
bool has_libc(const std::vector<Mapping>& mappings);

}  // namespace forksight::proc
