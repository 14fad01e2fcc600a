// The folder of one run: made before CMD starts, removed again if nothing was written into it.
#pragma once

#include <filesystem>
#include <memory>

#include "result.hpp"

namespace forksight {

class RunFolder {
 public:
  // Makes `out` and in it a folder named by local time and pid, both for their owner alone. Never reuses one.
  static Result<RunFolder> make(const std::filesystem::path& out);

  // A new folder in TMPDIR, or in /tmp, for its owner alone.
  static Result<RunFolder> make_private();

  const std::filesystem::path& path() const { return path_; }  // absolute
  std::filesystem::path shown() const { return shown_; }       // as the user gave it
  // Where the folders of other runs are; "" of a private one.
  const std::filesystem::path& root() const { return root_; }
  bool has_traces() const;
  // Removes the folder, and `out` if make() made it and nothing else is in it. A folder with a trace in it stays.
  void remove_if_empty() const;
  void remove_traces() const;

 private:
  // As long as forksight runs: nobody takes the folder for one of a run that is over. CMD does not inherit it.
  void lock();

  std::filesystem::path path_;
  std::filesystem::path shown_;
  std::filesystem::path root_;
  std::shared_ptr<const int> lock_;  // a descriptor with a lock of flock(2), released with its last owner
  std::filesystem::path made_out_;  // "" if it was there before
};

}  // namespace forksight
