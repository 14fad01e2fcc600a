// Finds global and static variables by address, and the members inside of them.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <unordered_map>

#include "symbols/elf_module.hpp"

namespace forksight::symbols {

class Variables {
 public:
  explicit Variables(const ElfModule& module);

  // The path of the member that lies `offset` bytes into the variable at `start`, as a program writes it: ".mutex",
  // "[3].mu", "" for the variable itself. The path does not go into locks, other types of the standard library, or
  // members without a name. If a part of `offset` remains, it is appended, for example as "+0x8".
  std::string member_path(std::uint64_t start, std::uint64_t offset) const;

 private:
  void collect(Dwarf_Die& parent, int depth);

  std::unordered_map<std::uint64_t, Dwarf_Die> variables_;
  std::size_t budget_;
};

}  // namespace forksight::symbols
