// Programs, libraries and debug files that take too long, too much memory, or crash the library that reads them. A file
// of another user may be made for this purpose. No check of a file can foresee each such case. So the process that
// reads says which file it works on, and its parent watches that (guard/child.hpp). If the work takes too long or ends
// the process, the parent notes the file here, and the next process reads less of it. The time of the work on all files
// together is limited, too: a process that has used it up reads less of each further file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace forksight::files {

enum class ReadLimit {
  kNone,
  kNoDebug,   // the debug information of the file is not read
  kNoFrames,  // the call frame information of the file is not read either
  kNotRead,   // the file is not read at all
};

// What may be read of the file that a process has mapped from `path`, because of earlier attempts to read this file.
ReadLimit read_limit_of(const std::string& path);
// What may be read of each file, because the work on all files together has taken too much time. `is_program`: the file
// is the main program of a process.
ReadLimit read_limit_of_all(bool is_program);
// A sentence for the report that says what was left out of all files; "" if nothing was.
std::string describe_read_limit_of_all();
// Restrains the file further, and counts the time of the attempt that has failed. False if the file is not read at all
// already.
bool lower_read_limit(const std::string& path);
// Forgets the time that the work on files has taken. Called before the command starts the first child for a task.
void begin_work();

// Makes the memory through which the child tells its parent what it works on. Call this before the child is made.
void share_work();
// Called by the child. Without this call, the objects FileWork do nothing.
void announce_work();
// The file that the child works on; "": none. `cpu_ms`: the processor time of the child when the child began this work,
// less the time that the child has used for this file before.
struct CurrentWork {
  std::string path;
  std::int64_t cpu_ms = 0;
  // the processor time of the child when it began this work, less the time that it has used for all files before
  std::int64_t all_cpu_ms = 0;
};
CurrentWork current_work();
// Returns the file on which the child works for too long; "" if it works on none for too long.
std::string find_costly_file(pid_t child);

// Allows this process to use more memory while it works on files: as much as the size of a file that it reads.
// `unpacked`: the bytes of compressed sections.
void allow_memory_for(int fd, std::uint64_t unpacked);

// Says that this process works on a file, as long as the object lives. Limits the memory of that work. If an exception
// ends the work, the file stays named, because the work on this file was the cause.
class FileWork {
 public:
  explicit FileWork(const std::string& path);
  ~FileWork();
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

 private:
  bool is_outermost_ = false;
  int exceptions_ = 0;
};

}  // namespace forksight::files
