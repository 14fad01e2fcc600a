// The name of a DWARF entry.
#pragma once

#include <elfutils/libdw.h>

#include <string>

namespace forksight::symbols {

// "app::Cache<int>::get" for a subprogram or an inlined call of it; "" if it has no name. With `needs_symbol` set
// afterwards, DWARF has only the bare name: a symbol table may know more.
std::string dwarf_function_name(Dwarf_Die& function, bool& needs_symbol);

// Absolute, without "." and "..": `path` as the unit has it.
std::string absolute_source_path(Dwarf_Die& unit, const char* path);

}  // namespace forksight::symbols
