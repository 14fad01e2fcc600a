// Finds the loaded object at an address without the loader's lock. Also tells whether the object at an address is still
// the same as before.
#pragma once

#include <link.h>

#include <cstdint>

namespace forksight {

struct LoadedObject {
  const link_map* map;  // null: there is none, and all other members are zero
  std::uint64_t start;  // where its ELF header is mapped
  std::uint64_t end;
};

// The object that contains the address. Asks the loader, which can answer without a lock since glibc 2.35. With earlier
// versions the function walks the loader's list, and makes some system calls for each object that was opened after the
// start. If the object cannot be read, the result is the same as if there were none. async-signal-safe,
// fork-child-safe.
LoadedObject find_object(std::uint64_t address);

// The address of the ELF header of the object with this bias and dynamic section; 0 if it was unloaded. `stays`: the
// object was loaded at start-up.
std::uint64_t find_elf_header(std::uint64_t bias, const ElfW(Dyn) * dynamic, bool stays);

// A number that distinguishes the object from another one that is loaded later at the same place, even with the same
// link map. It is a hash of the object's path, its address, and its ELF header, which differs between builds. 0: no
// object. Only for an object that is in use, and therefore cannot be unloaded during the call.
std::uint64_t identify(const LoadedObject& object);

// True for the shim's own functions and variables.
bool is_in_shim(std::uint64_t address);

}  // namespace forksight
