// The ELF symbols of a module, sorted by address. The symbols come from .symtab of the file or of its debug file. If
// neither file has a .symtab, the symbols come from .dynsym.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbols/elf_module.hpp"

namespace forksight::symbols {

struct Symbol {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  const char* name = nullptr;  // lives as long as the module
  std::uint8_t binding = 0;
};

class SymbolTable {
 public:
  explicit SymbolTable(ElfModule& module);

  // find_function() and find_object() return the function or object that contains `address`; null if there is none. A
  // function symbol without a size contains the addresses up to the next symbol, but at most 4096 bytes. If several
  // symbols have the same address, the symbol whose name users know best is taken.
  const Symbol* find_function(std::uint64_t address) const { return functions_.find(address); }
  const Symbol* find_object(std::uint64_t address) const { return objects_.find(address); }
  // find_function_named() and find_object_named() return the function or object whose name is `name`; null if there is
  // none. They prefer an exported symbol.
  const Symbol* find_function_named(std::string_view name) const { return functions_.find_named(name, path_); }
  const Symbol* find_object_named(std::string_view name) const { return objects_.find_named(name, path_); }

  bool has_functions() const { return !functions_.symbols.empty(); }

 private:
  struct Sorted {
    std::vector<Symbol> symbols;
    std::vector<std::uint64_t> reach;  // reach[i]: the farthest end among symbols[0] to symbols[i]

    void finish();
    const Symbol* find(std::uint64_t address) const;
    const Symbol* find_named(std::string_view name, const std::string& path) const;

    mutable std::unordered_map<std::string_view, std::size_t> by_name;  // filled at the first search by name
  };

  std::string path_;
  Sorted functions_;
  Sorted objects_;
};

}  // namespace forksight::symbols
