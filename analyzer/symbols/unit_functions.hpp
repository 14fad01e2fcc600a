// The functions of one DWARF unit by address. libdw's dwarf_getscopes (0.188) does not look into namespaces, which is
// where Clang puts them.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <map>
#include <vector>

namespace forksight::symbols {

class UnitFunctions {
 public:
  explicit UnitFunctions(Dwarf_Die unit);

  // The function that contains `address` and the inlined calls in it that do, innermost first; empty if there is none.
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
