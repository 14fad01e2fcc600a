// Global and static variables by address, and what lies inside of them.
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

  // How a program writes what lies `offset` bytes into the variable at `start`: ".mutex", "[3].mu", "" for the variable
  // itself. Stops at locks, at other types of the standard library and at what has no name; what is left of `offset`
  // comes last, as "+0x8".
  std::string member_path(std::uint64_t start, std::uint64_t offset) const;

 private:
  void collect(Dwarf_Die& parent, int depth);

  std::unordered_map<std::uint64_t, Dwarf_Die> variables_;
  std::size_t budget_;
};

}  // namespace forksight::symbols
