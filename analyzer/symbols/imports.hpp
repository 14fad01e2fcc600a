// Finds out which functions an ELF file imports from other files.
#pragma once

#include <span>
#include <string_view>

#include "symbols/elf_module.hpp"

namespace forksight::symbols {

// True if the file's table of dynamic symbols (.dynsym) has an undefined symbol with one of these names. Versions of
// symbols are ignored. Also true if the file has no such table: a static program contains the functions that it calls.
bool may_import(const ElfModule& module, std::span<const std::string_view> names);

}  // namespace forksight::symbols
