// Opens files whose names or folders other users control. The file is examined before it is opened for reading, because
// opening a device or a FIFO can do harm: the call can block, or create a pseudo-terminal.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "files/descriptor.hpp"
#include "result.hpp"

namespace forksight::files {

// Identifies a file that a process has mapped, by the numbers in /proc/PID/maps.
struct MappedFile {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
};

// A user whose process, core or trace names files. From these files, a report may contain only what this user may read.
struct Owner {
  uid_t uid = 65534;  // the user "nobody"
  gid_t gid = 65534;
  std::vector<gid_t> groups = {};  // further groups of the user
};

// The caller of the command, who may read everything that forksight may read.
inline const Owner kCaller{0, 0, {}};

// Opens a regular file for reading. Never opens a device, a FIFO, a socket or a folder, nor a file of /proc, /sys and
// other file systems of the kernel, not even through a link. A path below /proc/PID/root is resolved within that root:
// absolute links stay inside the root. On failure, the descriptor is empty and errno has the reason. EINVAL: this is
// not a regular file. ETIMEDOUT: its file system does not answer. EPERM: forksight runs as root, a link of another user
// leads to the file, and that user may not read the file.
Descriptor open_regular(const std::string& path);

// Like open_regular(), for a path that a process, core or trace of `owner` names. If forksight runs as root, the file
// is opened only if `owner` may read it, and may search each folder of the path (else EPERM). So nobody can make root
// open a secret. Only the permission bits decide. Access control lists are not read.
Descriptor open_for(const Owner& owner, const std::string& path);

// Like open_for(), for a file that a process has mapped. The mapped file itself may always be opened. A file with other
// numbers than `mapped` may be the mapped file, too, because some file systems (overlayfs, btrfs) show other numbers in
// /proc/PID/maps than in `stat`. Such a file is opened only if `owner` may read it.
Descriptor open_mapped(const Owner& owner, const std::string& path, const std::optional<MappedFile>& mapped);

// Returns the words for an errno of the functions above. Most of these words are those of strerror().
std::string reason_of(int error);

// Reads with pread until `bytes` is full or the file ends. Returns the number of bytes that were read.
std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes);

struct OwnedText {
  std::string text;
  Owner owner;  // of the file
};

// Reads a regular file of at most `limit` bytes. An error is one sentence.
Result<OwnedText> read_text(const std::string& path, std::uint64_t limit);

}  // namespace forksight::files
