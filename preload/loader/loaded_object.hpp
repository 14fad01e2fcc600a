// Which loaded object an address is in, without the loader's lock, and whether it is still the one that was met before.
#pragma once

#include <link.h>

#include <cstdint>

namespace forksight {

struct LoadedObject {
  const link_map* map;  // null: none, and the rest is zero
  std::uint64_t start;  // where its ELF header is mapped
  std::uint64_t end;
};

// Asks the loader, which has an answer without a lock since glibc 2.35. Before, reads the loader's list: an object of
// the start-up is found at the cost of a walk, one that was opened later at the cost of some system calls for each.
// None, too: the object cannot be read. async-signal-safe, fork-child-safe.
LoadedObject find_object(std::uint64_t address);

// Of an object in the list, whose own idea of bias and dynamic section these are; 0 if it has gone. `stays`: it was
// there at the start.
std::uint64_t find_elf_header(std::uint64_t bias, const ElfW(Dyn) * dynamic, bool stays);

// Tells it from another object that is loaded later at the same place, and even with the same link map: a hash over its
// path, its ELF header, which differs from build to build, and where it is. Of objects that are in use, so they stay
// for now. 0: none.
std::uint64_t identify(const LoadedObject& object);

// Is it one of the shim's own functions or variables?
bool is_in_shim(std::uint64_t address);

}  // namespace forksight
