// This process's own memory, read by the kernel: what is not mapped shortens the copy and never faults, whatever other
// threads unmap meanwhile. async-signal-safe, fork-child-safe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace forksight {

// Returns the number of bytes copied. Where a filter refuses process_vm_readv, through a pipe; where it refuses that,
// too, nothing is read.
std::size_t read_memory(const void* from, void* to, std::size_t bytes);

// The same for several pieces at once. Stops at the first that is not mapped; returns the bytes of those before it, and
// perhaps a part of it.
std::size_t read_pieces(iovec* local, iovec* remote, std::uint32_t count);

}  // namespace forksight
