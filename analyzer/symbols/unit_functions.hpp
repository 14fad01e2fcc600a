// Finds the functions of one DWARF unit by address. Clang puts the entries of functions into namespaces, and libdw's
// dwarf_getscopes (0.188) does not look into namespaces.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <map>
#include <vector>

namespace forksight::symbols {

class UnitFunctions {
 public:
  explicit UnitFunctions(Dwarf_Die unit);

  // Returns the inlined calls that contain `address`, innermost first, and then the function that contains `address`.
  // Empty if no function contains `address`.
  std::vector<Dwarf_Die> chain_at(std::uint64_t address) const;

 private:
  struct Range {
    std::uint64_t end;
    Dwarf_Die function;
  };
  void collect(Dwarf_Die& parent, int depth);

  std::map<std::uint64_t, Range> functions_;  // by start
};

}  // namespace forksight::symbols
