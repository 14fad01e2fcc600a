// The folder of one run. The folder is made before CMD starts. At the end of the run it is removed again if there is no
// evidence to keep.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "files/descriptor.hpp"
#include "result.hpp"

namespace forksight {

class RunFolder {
 public:
  // Makes `out` if it does not exist. Makes a new folder in `out`. The name of the new folder is the local time and the
  // pid. Only the owner may access the folders that this function makes.
  static Result<RunFolder> make(const std::filesystem::path& out);

  // Makes a new folder in TMPDIR. If that is not possible, makes it in /tmp, /var/tmp or /dev/shm. Only the owner may
  // access the folder.
  static Result<RunFolder> make_private();

  const std::filesystem::path& path() const { return path_; }  // absolute
  std::filesystem::path shown() const { return shown_; }       // as the user wrote it
  // The folder with the other runs; "" for a private folder.
  const std::filesystem::path& root() const { return root_; }
  // A descriptor of the folder; -1 if forksight may not read the folder. The owner of `out` can put another folder or a
  // link at the path of the folder. The functions below therefore use the descriptor, and not the path.
  int fd() const { return held_->folder.get(); }
  // True if the path still leads to the folder.
  bool is_in_place() const;
  bool has_traces() const;
  bool has_files() const;
  // Removes the folder, unless it contains a trace or a file that forksight did not write. Also removes `out`, if
  // make() made `out` and `out` is empty.
  void remove_if_empty() const;
  void remove_traces() const;
  // Tries whether the folder takes a file as large as the smallest trace. Returns "", or a sentence that says that
  // processes may lack traces, with the reason.
  std::string find_lack_of_room() const;

 private:
  struct Held {
    files::Descriptor folder;
    files::Descriptor parent;  // O_PATH; not open for a private folder that could not be opened
    files::Descriptor above;   // O_PATH, the parent of `out`, if make() made `out`
  };

  // Opens the new folder `name`. Returns 0, or an errno if another program has changed the folder.
  static int open_new(Held& held, const std::string& name);
  std::vector<std::string> list() const;

  std::filesystem::path path_;
  std::filesystem::path shown_;
  std::filesystem::path root_;
  std::shared_ptr<const Held> held_;
};

}  // namespace forksight
