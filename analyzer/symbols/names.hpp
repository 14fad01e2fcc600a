// Makes names for people: demangled, without parameter lists, return types and compiler suffixes. Template arguments
// stay.
#pragma once

#include <string>
#include <string_view>

namespace forksight::symbols {

// "_ZN3app5CacheIiE3getEi" -> "app::Cache<int>::get"; a C name is returned unchanged.
std::string readable_name(const char* linkage_name);

// The same for a name that is demangled already: "void app::f<int>(int) [clone .isra.0]" -> "app::f<int>".
std::string simplify_name(std::string_view demangled);

// True for the files of the C library: its main library, its loader, and libpthread, which glibc had until 2.33. Judged
// by the file name.
bool is_c_library(std::string_view path);

}  // namespace forksight::symbols
