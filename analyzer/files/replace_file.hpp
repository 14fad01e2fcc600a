// Writes files into folders that other users may write to. Never follows a link of such a user.
#pragma once

#include <string>
#include <string_view>

#include "files/descriptor.hpp"
#include "result.hpp"

namespace forksight::files {

// A file that is open for writing a report.
struct OutputFile {
  Descriptor file;
  bool is_regular = false;  // false: a stream, such as a terminal, a pipe or /dev/null
};

// Opens `path` for writing.
// - A regular file is replaced by a new, empty one. The new file is created under another name, with O_EXCL, and then
//   renamed. So no link of another user is followed, and a reader who has the old file open keeps it. The new file has
//   the mode, the owner and the group of the old one. If there was no file, the mode is 0666 less the umask.
// - If the folder allows no new file (it is not writable, or the file itself is mounted there), the file is emptied in
//   place. This is an error in two cases. First, another user owns the file, in a folder that everybody may write to.
//   Second, the caller is root, another user may write to the folder, and the file has several names.
// - A link is followed if its owner is the caller or root. Otherwise the link is replaced by a file.
// - Anything else is opened as it is: /dev/stdout, /dev/null, a FIFO, a terminal.
// It is an error for root if another user owns the FIFO, or a link in the place of a folder of the path. It is an error
// for every caller if such a link or FIFO is in a folder like /tmp. Links of /proc are always followed. The path is
// resolved one folder at a time, so a folder that another user renames meanwhile does not change the place.
// An error is only the reason, for "PATH: cannot be written: REASON".
Result<OutputFile> open_output(const std::string& path);

// Makes `text` the content of `path`. A reader sees either the old content or the new content. If `path` is a link, the
// link is replaced. Links in the place of a folder are followed, whoever owns them. The new file belongs to the caller
// and has the mode `mode`. Returns "", or the reason of the failure.
std::string replace_file(const std::string& path, std::string_view text, unsigned mode);

// Writes all of `text`. True if everything was written. Otherwise errno has the reason.
bool write_all(int fd, std::string_view text);

}  // namespace forksight::files
