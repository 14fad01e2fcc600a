// Writes files into folders that other users may write to. Never follows a link of such a user.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <utility>

#include "files/descriptor.hpp"
#include "result.hpp"

namespace forksight::files {

// The place of a file that is to be written. `folder` refers to its folder (O_PATH), so the folder stays the same while
// other users rename the folders of its path, or put links in their place.
struct OutputPlace {
  Descriptor folder;
  struct stat folder_status {};
  std::string name;  // of the file in the folder, without a slash
  bool exists = false;
  Descriptor file;  // O_PATH, if the file exists. A symbolic link is not followed
  struct stat status {};
};

// A file for a report.
class OutputFile {
 public:
  // A stream, or a regular file that is written in place.
  OutputFile(Descriptor file, bool is_regular) : file_(std::move(file)), is_regular_(is_regular) {}
  // A regular file that each write() replaces. `is_new`: the caller has created the file, and it is empty.
  OutputFile(OutputPlace place, bool is_new) : place_(std::move(place)), is_regular_(true), is_new_(is_new) {}

  // False: a stream, such as a terminal, a pipe or /dev/null.
  bool is_regular() const { return is_regular_; }
  // The descriptor of a stream, or of a file that is written in place; otherwise -1.
  int fd() const { return file_.get(); }

  // Makes `text` the whole content of a regular file, or writes it to a stream. If the disk is full, a file that is
  // replaced keeps its old content, and a file that is new is removed. Returns 0 or an errno.
  int write(std::string_view text);

 private:
  int replace(std::string_view text);
  int write_in_place(std::string_view text) const;

  OutputPlace place_;
  Descriptor file_;
  bool is_regular_ = false;
  bool is_new_ = false;
  bool was_replaced_ = false;  // place_.file is no longer the file that has the name
};

// Opens `path` for writing.
// - A regular file is replaced by each write(). The new file is created under another name, with O_EXCL. It is renamed
//   when it is complete. So no link of another user is followed, a reader sees only complete reports, and a reader who
//   has the old file open keeps it. The new file has the mode, the owner and the group of the old one. If there was no
//   file, an empty one is created at once, whose mode is 0666 less the umask.
// - If the folder allows no new file (it is not writable, or the file itself is mounted there), write() empties the
//   file and writes in place. This is an error in two cases. First, another user owns the file, in a folder that
//   everybody may write to. Second, the caller is root, another user may write to the folder, and the file has several
//   names.
// - A link is followed if its owner is the caller or root. Otherwise the link is replaced by a file.
// - Anything else is opened as it is: /dev/stdout, /dev/null, a FIFO, a terminal.
// It is an error for root if another user owns the FIFO, or a link in the place of a folder of the path. It is an error
// for every caller if such a link or FIFO is in a folder like /tmp. Links of /proc are always followed. The path is
// resolved one folder at a time, so a folder that another user renames meanwhile does not change the place.
// A full disk is no error here, but one of write().
// An error is only the reason, for "PATH: cannot be written: REASON".
Result<OutputFile> open_output(const std::string& path);

// Opens `path` as open_output() does, and writes `text`. Returns "", or the reason of the failure.
std::string write_output(const std::string& path, std::string_view text);

// Makes `text` the content of `path`. A reader sees either the old content or the new content. If `path` is a link, the
// link is replaced. Links in the place of a folder are followed, whoever owns them. The new file belongs to the caller
// and has the mode `mode`. Returns "", or the reason of the failure.
std::string replace_file(const std::string& path, std::string_view text, unsigned mode);
// The same for the file `name` in the folder to which the descriptor refers.
std::string replace_file(int folder, const std::string& name, std::string_view text, unsigned mode);

// Writes all of `text`. True if everything was written. Otherwise errno has the reason.
bool write_all(int fd, std::string_view text);

}  // namespace forksight::files
