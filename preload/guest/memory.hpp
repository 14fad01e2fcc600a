// Reads this process's own memory by way of the kernel: memory that is not mapped shortens the copy and never faults,
// even if other threads unmap it meanwhile. async-signal-safe, fork-child-safe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace forksight {

// Returns the number of bytes copied. If a filter refuses process_vm_readv, a pipe is used; if it refuses that, too,
// nothing is read.
std::size_t read_memory(const void* from, void* to, std::size_t bytes);

// The same for several pieces at once. Stops at the first piece that is not mapped; returns the bytes of those before
// it, and perhaps a part of it.
std::size_t read_pieces(iovec* local, iovec* remote, std::uint32_t count);

}  // namespace forksight
