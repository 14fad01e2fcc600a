// The folder of one run. The folder is made before CMD starts. At the end of the run it is removed again if there is no
// evidence to keep.
#pragma once

#include <filesystem>
#include <memory>

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
  bool has_traces() const;
  bool has_files() const;
  // Removes the folder, unless it contains a trace or a file that forksight did not write. Also removes `out`, if
  // make() made `out` and `out` is empty.
  void remove_if_empty() const;
  void remove_traces() const;

 private:
  // Locks the folder for as long as forksight runs. The lock shows other forksight processes that the run goes on. CMD
  // does not inherit the lock.
  void lock();

  std::filesystem::path path_;
  std::filesystem::path shown_;
  std::filesystem::path root_;
  std::shared_ptr<const int> lock_;  // a descriptor that holds a lock of flock(2); the last copy closes it
  std::filesystem::path made_out_;   // "" if `out` existed before
};

}  // namespace forksight
