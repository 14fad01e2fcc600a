// Makes the name of a DWARF entry.
#pragma once

#include <elfutils/libdw.h>

#include <string>

namespace forksight::symbols {

// "app::Cache<int>::get" for a subprogram or an inlined call of it; "" if it has no name. Sets `needs_symbol` if DWARF
// has only the bare name: then a symbol table may have a better one.
std::string dwarf_function_name(Dwarf_Die& function, bool& needs_symbol);

// Makes a path out of `path`, which the unit contains: absolute, and without "." and "..".
std::string absolute_source_path(Dwarf_Die& unit, const char* path);

}  // namespace forksight::symbols
