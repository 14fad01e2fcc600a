// Lets the kernel copy this process's own memory. The copy ends before memory that is not mapped. There is never a
// fault, even if other threads unmap the memory meanwhile. async-signal-safe, fork-child-safe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace forksight {

// Returns the number of bytes copied. If process_vm_readv is refused, a pipe is used. If the pipe is refused, too,
// nothing is read.
std::size_t read_memory(const void* from, void* to, std::size_t bytes);

// As read_memory(), but for several pieces at once. Stops at the first piece that is not mapped. Returns the number of
// bytes copied, which may include a part of that piece.
std::size_t read_pieces(iovec* local, iovec* remote, std::uint32_t count);

}  // namespace forksight
