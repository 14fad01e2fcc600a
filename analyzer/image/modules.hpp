// The ELF files that a process has mapped. They are found in the process's memory, so forksight notices when a file was
// replaced.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "files/open_file.hpp"
#include "forksight/abi/glibc.hpp"
#include "image/memory.hpp"
#include "proc/proc_text.hpp"
#include "symbols/symbols.hpp"

namespace forksight::image {

struct FilePlace {
  std::string path;
  files::Owner owner;  // the user who names the path
};

// Other places where the file of a mapping may be, besides its path. The best place comes first.
using OtherPlaces = std::function<std::vector<FilePlace>(const proc::Mapping&)>;

// Returns a module for each ELF file whose code is mapped, in ascending order. For [vdso], and for each file that
// cannot be found unchanged, the module contains the file's bytes, copied from memory. If they cannot be copied, the
// symbolizer or a limit says that the frames have no names. `owner`: the user whose process or core this is.
std::vector<symbols::Module> find_modules(const files::Owner& owner, const Memory& memory,
                                          const std::vector<proc::Mapping>& mappings, const OtherPlaces& other_places,
                                          std::vector<std::string>& limits);

// Notes which module is the main program. `exe`: its path.
void mark_program(std::vector<symbols::Module>& modules, const std::string& exe);

// Returns the facts about the shared libc of a process. If the process has no shared libc, returns the facts about the
// libc that is linked into the program.
abi::Libc find_libc(const std::vector<symbols::Module>& modules, const std::string& exe);

// Returns the sentence that a report must contain about this libc; "" if none is needed.
std::string libc_limit(const abi::Libc& libc);

// Returns the path without " (deleted)" at its end, as in "/usr/lib/libx.so (deleted)".
std::string without_deleted(const std::string& path);

}  // namespace forksight::image
