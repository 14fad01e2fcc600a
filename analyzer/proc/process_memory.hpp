// Reads a few bytes of another process's memory from /proc/TID/mem. Nothing is stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proc/dead_ranges.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::proc {

// Opens /proc/TID/mem for reading. On failure, returns -1 and sets errno.
int open_memory(std::int32_t tid);

// Opens the memory of many processes in batches, if another process must open the files (files::has_opener()). So this
// process waits once for each batch, and not once for each file. open_memory() uses a file that was opened for its
// thread. Failures are not noted, because open_memory() then tries again. Does nothing if this process opens the files
// itself.
class MemoriesAhead {
 public:
  // The processes, in the order in which they will be read. `tids` has threads that have not ended; it is empty if the
  // memory is not wanted.
  explicit MemoriesAhead(std::vector<ThreadsOf> processes);
  ~MemoriesAhead();
  MemoriesAhead(const MemoriesAhead&) = delete;
  MemoriesAhead& operator=(const MemoriesAhead&) = delete;

  // Must be called before the process with this index is read. Opens the batch that has this process, and closes the
  // batch before it.
  void reach(std::size_t index);

 private:
  void open(std::span<const ThreadsOf> batch);
  void close();

  std::vector<ThreadsOf> processes_;
  std::size_t batch_;               // the number of processes in a batch
  std::size_t end_ = 0;             // index of the first process after the open batch
  std::vector<std::int32_t> tids_;  // of the open batch
};

class ProcessMemory {
 public:
  explicit ProcessMemory(std::int32_t tid);
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  bool is_open() const { return fd_ >= 0; }
  // Reads a little-endian number of `size` bytes, at most 8.
  std::optional<std::uint64_t> read(std::uint64_t address, std::size_t size) const;
  bool read(std::uint64_t address, std::span<std::byte> bytes) const;
  // Reads a text of at most 4,095 bytes that ends with a zero.
  std::optional<std::string> read_c_string(std::uint64_t address) const;

 private:
  int fd_;
  DeadRanges dead_;
};

}  // namespace forksight::proc
