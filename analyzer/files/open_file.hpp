// Opens files whose names, or whose places, other users control. What a name leads to is looked at before it is opened
// for reading, because opening a device or a FIFO can already do harm: it can wait, or make a terminal.
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

// A file that a process has mapped, as /proc/PID/maps names it.
struct MappedFile {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
};

// Opens a regular file for reading. Devices, FIFOs, sockets and folders are never opened, and neither are the files of
// /proc, /sys and other file systems of the kernel that a link leads to. A path below /proc/PID/root is resolved within
// that root: absolute links there stay inside of it. If there is no such file, the descriptor is empty and errno has
// the reason: EINVAL for something that is no regular file.
Descriptor open_regular(const std::string& path);

// The same for the file of a mapping. For root, another file than the mapped one is opened only if everybody may read
// it: a link that was put at the place of a library does not make root read a secret. File systems that show a process
// other numbers than `stat` (overlayfs, btrfs) are the reason why another file is opened at all.
Descriptor open_mapped(const std::string& path, const std::optional<MappedFile>& mapped);

// "regular file", "FIFO" ... for a message about errno of the functions above.
std::string reason_of(int error);

// pread until `bytes` is full or the file ends. Returns the number of bytes.
std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes);

// The content of a regular file of at most `limit` bytes. An error is one sentence.
Result<std::string> read_text(const std::string& path, std::uint64_t limit);

}  // namespace forksight::files
