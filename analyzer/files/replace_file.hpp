// Writes files into folders that other users may write to, without following a link of theirs.
#pragma once

#include <string>
#include <string_view>

#include "files/descriptor.hpp"
#include "result.hpp"

namespace forksight::files {

// A file that is opened for a report.
struct OutputFile {
  Descriptor file;
  bool is_regular = false;  // else a stream: a terminal, a pipe, /dev/null
};

// Opens `path` for writing.
// - A regular file becomes a new, empty one. It is made under a name of its own, with O_EXCL, and renamed. So no link
// is
//   followed that another user put there, and a reader who has the old file open keeps it. The new file has the mode,
//   the owner and the group of the old one. Without an old one the mode is 0666 less the umask.
// - If the folder allows no new file (it is not writable, or the file itself is mounted there), the file is emptied in
//   place; not if another user owns it in a folder that everybody may write to.
// - A link is followed if its owner is the caller or root. Otherwise it is replaced.
// - Anything but a regular file is opened as it is: /dev/stdout, /dev/null, a FIFO, a terminal.
// An error is the reason alone, for "PATH: cannot be written: REASON".
Result<OutputFile> open_output(const std::string& path);

// Makes `text` the content of `path`: a reader sees the old content or the new one. A link of that name is replaced.
// The new file belongs to the caller and has the mode `mode`. Returns "" or the reason of the failure.
std::string replace_file(const std::string& path, std::string_view text, unsigned mode);

// False: not everything was written, and errno has the reason.
bool write_all(int fd, std::string_view text);

}  // namespace forksight::files
