// Limits the memory and the processor time that the traces of one report take. A stranger may have made a trace whose
// records take far more memory or time than the records of honest traces.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "collect/chain.hpp"

namespace forksight::collect {

class TraceBudget {
 public:
  TraceBudget();

  // Called before the records of a file are read. `size`: the bytes that the file takes on disk. The file may take as
  // much memory, and some time for each MiB. An honest trace takes less. A file may also take half of what is left of
  // the budget, so a hostile trace leaves room for other traces.
  void begin_file(std::uint64_t size);
  // Called before each record is read. Returns false if the file has taken all that it may take. Then the other records
  // of this file must not be read.
  bool allows(const TraceRecord& record);
  // Called when the records have been read, before the names of functions are looked up. Other limits hold for that
  // work (files/costly_files.hpp), so its time does not count here.
  void stop_clock();
  // Called after a name or a stack was looked up that takes so many bytes. Returns false if the names and stacks of the
  // file have taken all that they may take. Then this one must not be kept.
  bool allows_name(std::size_t bytes);
  // Called when the tables of the file have been freed.
  void end_file();

  // What the file has used up: "memory" or "time"; null if it has used up neither.
  const char* used_up() const { return used_up_; }

 private:
  using Nanoseconds = std::chrono::nanoseconds;

  bool has_room();

  std::uint64_t bytes_left_;
  std::size_t name_bytes_left_;
  Nanoseconds time_left_;
  std::uint64_t own_bytes_ = 0;  // what the file may take before the budget counts
  Nanoseconds own_time_{};
  std::uint64_t file_bytes_ = 0;           // the memory of this process when the file began
  Nanoseconds file_time_{};                // the processor time of this process when the file began
  std::uint64_t most_bytes_ = 0;           // for this file
  std::size_t own_name_bytes_ = 0;         // what the names of this file may take before the budget counts
  std::size_t least_name_bytes_left_ = 0;  // what this file must leave of `name_bytes_left_`
  Nanoseconds most_time_{};
  const char* used_up_ = nullptr;
  // since the latest look at the memory and at the clock
  std::size_t records_ = 0;
  std::size_t payload_ = 0;
};

}  // namespace forksight::collect
