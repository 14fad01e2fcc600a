// Tells what a process has mapped, and which other processes have the same memory mapped.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "forksight/abi/glibc.hpp"
#include "proc/proc_text.hpp"
#include "proc/process_memory.hpp"

namespace forksight::proc {

// Returns all lines of /proc/TID/maps that forksight understands, in ascending order. `tid`: any living thread of the
// process.
std::vector<Mapping> read_mappings(std::int32_t tid);

const Mapping* find_mapping(const std::vector<Mapping>& mappings, std::uint64_t address);

// The ELF file that contains the variable at `address`. It is found from the mappings around the address. `path` is ""
// if there is no such file. `memory` is the memory of the process that `mappings` come from.
struct WordModule {
  std::string path;
  std::uint64_t bias = 0;
};
WordModule find_module(const ProcessMemory& memory, const std::vector<Mapping>& mappings, std::uint64_t address);

// Returns the libc of the process of `tid`: the shared libc that the process has mapped, or the libc that is linked
// into its program.
abi::Libc libc_of(std::int32_t tid, const std::vector<Mapping>& mappings);
// Lets another process parse the files that contain a libc: `parser` returns what libc_of() would return in that
// process. A process with rights that the owner of the files lacks must not parse the files itself. If `parser` is
// empty, this process parses the files. libc_of() keeps the answer of `parser` for each set of files. If the answer has
// no version, libc_of() asks again at later calls, but at most three times in all.
using ParseLibc = std::function<abi::Libc(std::int32_t tid)>;
void set_libc_parser(ParseLibc parser);

// A byte of shared memory, independent of its address in each process that maps it.
struct SharedPlace {
  std::string device;
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;
  std::string path;
  friend bool operator==(const SharedPlace& one, const SharedPlace& other) {
    return one.inode == other.inode && one.offset == other.offset && one.device == other.device;
  }
};
// Returns the place of the byte at `address`. nullopt: the byte is not in shared memory that can be identified.
std::optional<SharedPlace> find_shared_place(const std::vector<Mapping>& mappings, std::uint64_t address);
// True if no other process can map this memory, except a forked child of a process that has the memory mapped. That is
// so if the memory has no name, or if its name was removed. `tid`: a thread of a process that has the memory mapped.
bool is_closed_to_others(std::int32_t tid, const SharedPlace& place);

// The shared mappings of all processes that may be read, from one pass over the processes.
class SharedMemory {
 public:
  // If the mappings of one of `must_read` cannot be read, mappers() always returns nullopt.
  static SharedMemory read(const std::set<std::int32_t>& must_read);
  // The processes that have this byte mapped; nullopt if that is not known.
  std::optional<std::vector<std::int32_t>> mappers(const SharedPlace& place) const;

 private:
  struct Part {
    std::int32_t pid = 0;
    Mapping mapping;
  };
  std::vector<Part> parts_;
  bool refused_ = false;
};

}  // namespace forksight::proc
