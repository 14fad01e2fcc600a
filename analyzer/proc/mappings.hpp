// What a process has mapped, and who else has the same memory.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "forksight/abi/glibc.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

// All of /proc/TID/maps that can be understood, ascending. `tid`: any thread of the process that lives.
std::vector<Mapping> read_mappings(std::int32_t tid);

const Mapping* find_mapping(const std::vector<Mapping>& mappings, std::uint64_t address);

// The ELF file whose variable `address` is, by what is mapped around it; path "" if it is of none. `tid` has it mapped.
struct WordModule {
  std::string path;
  std::uint64_t bias = 0;
};
WordModule find_module(std::int32_t tid, const std::vector<Mapping>& mappings, std::uint64_t address);

// What the process of `tid` runs on: the libc that it has mapped, or the one that its program was linked with.
abi::Libc libc_of(std::int32_t tid, const std::vector<Mapping>& mappings);

// A byte of shared memory, whatever its address is in each process that maps it.
struct SharedPlace {
  std::string device;
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;
  std::string path;
  friend bool operator==(const SharedPlace& one, const SharedPlace& other) {
    return one.inode == other.inode && one.offset == other.offset && one.device == other.device;
  }
};
// nullopt: `address` is not in shared memory that has an identity.
std::optional<SharedPlace> find_shared_place(const std::vector<Mapping>& mappings, std::uint64_t address);
// Nobody can map it anew, but by forking from one who has it: without a name, or with one that was removed.
// `tid`: who has it mapped.
bool is_closed_to_others(std::int32_t tid, const SharedPlace& place);

// The shared mappings of all processes that may be read, from one pass over them.
class SharedMemory {
 public:
  // Those among `must_read` that refuse make every answer unknown.
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
