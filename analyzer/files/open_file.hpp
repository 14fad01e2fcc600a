// Opens files whose names or folders other users control. The file is examined before it is opened for reading, because
// even to open a device or a FIFO can do harm: the open can wait, or create a terminal.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "files/descriptor.hpp"
#include "result.hpp"

namespace forksight::files {

// Identifies a file that a process has mapped, by the numbers in /proc/PID/maps.
struct MappedFile {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
};

// Opens a regular file for reading. Never opens a device, a FIFO, a socket or a folder, nor a file of /proc, /sys and
// other file systems of the kernel, not even through a link. A path below /proc/PID/root is resolved within that root:
// absolute links stay inside the root. On failure, the descriptor is empty and errno has the reason. EINVAL: this is
// not a regular file. ETIMEDOUT: its file system does not answer.
Descriptor open_regular(const std::string& path);

// The same for the file of a mapping. If forksight runs as root, a file other than the mapped one is opened only if
// everybody may read it (else EACCES). So a link that replaces a library cannot make root read a secret. Other files
// must be accepted, because some file systems (overlayfs, btrfs) show other numbers in /proc/PID/maps than in `stat`.
Descriptor open_mapped(const std::string& path, const std::optional<MappedFile>& mapped);

// Returns the words for an errno of the functions above: "not a regular file" for EINVAL, and those of strerror() for
// all other values.
std::string reason_of(int error);

// Reads with pread until `bytes` is full or the file ends. Returns the number of bytes that were read.
std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes);

// Reads a regular file of at most `limit` bytes. An error is one sentence.
Result<std::string> read_text(const std::string& path, std::uint64_t limit);

}  // namespace forksight::files
