// Makes the name of a DWARF entry.
#pragma once

#include <elfutils/libdw.h>

#include <string>

namespace forksight::symbols {

// Returns the name of a subprogram, or of an inlined call of a subprogram, for example "app::Cache<int>::get". Returns
// "" if the subprogram has no name. Sets `needs_symbol` if DWARF has only the bare name: then a symbol table may have a
// better name.
std::string dwarf_function_name(Dwarf_Die& function, bool& needs_symbol);

// Makes the path `path` of the unit absolute, and removes "." and ".." from it.
std::string absolute_source_path(Dwarf_Die& unit, const char* path);

}  // namespace forksight::symbols
