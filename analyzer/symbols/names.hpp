// Makes names for people: demangled, without parameter lists, return types and compiler suffixes. Template arguments
// stay.
#pragma once

#include <string>
#include <string_view>

namespace forksight::symbols {

// Returns the name as people know it: "app::Cache<int>::get" for "_ZN3app5CacheIiE3getEi". From the name of a C
// function, removes only the symbol version and the suffixes of compilers.
std::string readable_name(const char* linkage_name);

// Like readable_name(), but for a name that is already demangled: "void app::f<int>(int) [clone .isra.0]" ->
// "app::f<int>".
std::string simplify_name(std::string_view demangled);

// True if the file name is that of a file of the C library: its main library, its loader, or libpthread, which glibc
// had until 2.33.
bool is_c_library(std::string_view path);

}  // namespace forksight::symbols
