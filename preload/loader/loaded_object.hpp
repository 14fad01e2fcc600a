// Finds the loaded object at an address without the loader's lock, and tells whether an object is still the one that
// was seen there before.
#pragma once

#include <link.h>

#include <cstdint>

namespace forksight {

struct LoadedObject {
  const link_map* map;  // null: there is none, and all other members are zero
  std::uint64_t start;  // where its ELF header is mapped
  std::uint64_t end;
};

// Asks the loader, which has an answer without a lock since glibc 2.35. With earlier versions it reads the loader's
// list: an object of the start-up costs a walk, an object that was opened later costs some system calls. If the object
// cannot be read, the result is the same as for none. async-signal-safe, fork-child-safe.
LoadedObject find_object(std::uint64_t address);

// For an object in the list with this bias and dynamic section; 0 if it was unloaded. `stays`: it was there at the
// start.
std::uint64_t find_elf_header(std::uint64_t bias, const ElfW(Dyn) * dynamic, bool stays);

// Distinguishes the object from another one that is loaded later at the same place, even with the same link map: a hash
// over its path, its ELF header, which differs between builds, and its address. For objects in use, which therefore
// stay loaded for now. 0: no object.
std::uint64_t identify(const LoadedObject& object);

// True for the shim's own functions and variables.
bool is_in_shim(std::uint64_t address);

}  // namespace forksight
