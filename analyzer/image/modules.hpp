// The ELF files that a process has mapped, found in its memory, so that a replaced file is noticed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "forksight/abi/glibc.hpp"
#include "image/memory.hpp"
#include "proc/proc_text.hpp"
#include "symbols/symbols.hpp"

namespace forksight::image {

// Where else than at its path the file of a mapping may be found, best first.
using OtherPlaces = std::function<std::vector<std::string>(const proc::Mapping&)>;

// One for each ELF file whose code is mapped, in ascending order. If the mapped file cannot be found unchanged, and for
// [vdso], the module contains its bytes from memory. If these are incomplete, the symbolizer reports that it has no
// names.
std::vector<symbols::Module> find_modules(const Memory& memory, const std::vector<proc::Mapping>& mappings,
                                          const OtherPlaces& other_places, std::vector<std::string>& limits);

// The libc of a process: that of its module libc, or what the program itself was linked with.
abi::Libc find_libc(const std::vector<symbols::Module>& modules, const std::string& exe);

// What a report must say about it; "": nothing.
std::string libc_limit(const abi::Libc& libc);

// "/usr/lib/libx.so (deleted)" without " (deleted)".
std::string without_deleted(const std::string& path);

}  // namespace forksight::image
