// Finds the function, file and line of an address in DWARF. Each inlined call becomes a frame.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/elf_module.hpp"
#include "symbols/unit_functions.hpp"

namespace forksight::symbols {

struct SourceFrame {
  std::string function;  // "" if DWARF does not name the function
  std::string file;
  int line = 0;
  bool inlined = false;  // the call was inlined into the function of the next frame
};

class SourceMap {
 public:
  explicit SourceMap(ElfModule& module);

  // Returns the frames, innermost first. The last frame is the function into which the calls of the other frames were
  // inlined. Empty if there is no debug information for `address`.
  std::vector<SourceFrame> find(std::uint64_t address);

  bool has_debug_information() const { return has_dwarf_; }

 private:
  std::optional<Dwarf_Die> unit_at(std::uint64_t address);
  void index_units();

  ElfModule& module_;
  bool has_dwarf_ = false;
  bool indexed_ = false;
  struct Range {
    std::uint64_t end;
    Dwarf_Die unit;
  };
  std::unordered_map<const void*, UnitFunctions> functions_;  // by unit
  std::map<std::uint64_t, Range> units_;                      // by start; filled when .debug_aranges lacks an address
};

}  // namespace forksight::symbols
