// The ELF files that a process has mapped. They are found in the process's memory, so forksight notices when a file was
// replaced.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "forksight/abi/glibc.hpp"
#include "image/memory.hpp"
#include "proc/proc_text.hpp"
#include "symbols/symbols.hpp"

namespace forksight::image {

// Other places where the file of a mapping may be, besides its path. The best place comes first.
using OtherPlaces = std::function<std::vector<std::string>(const proc::Mapping&)>;

// Returns a module for each ELF file whose code is mapped, in ascending order. For [vdso], and for each file that
// cannot be found unchanged, the module contains the file's bytes, copied from memory. If they cannot be copied, the
// symbolizer or a limit says that the frames have no names.
std::vector<symbols::Module> find_modules(const Memory& memory, const std::vector<proc::Mapping>& mappings,
                                          const OtherPlaces& other_places, std::vector<std::string>& limits);

// Returns the version of the shared libc of a process or, if it has none, of the libc that is linked into the program.
abi::Libc find_libc(const std::vector<symbols::Module>& modules, const std::string& exe);

// Returns the sentence that a report must contain about this libc; "" if none is needed.
std::string libc_limit(const abi::Libc& libc);

// Returns the path without " (deleted)" at its end, as in "/usr/lib/libx.so (deleted)".
std::string without_deleted(const std::string& path);

}  // namespace forksight::image
