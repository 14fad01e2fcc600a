// Decides whether libdw may read a file with debug information. If libdw may read it, charges a budget that all such
// files of one run of the command share.
#pragma once

#include <string>

#include "files/elf_tables.hpp"

namespace forksight::files {

struct DebugVerdict {
  bool may_read = false;
  // If the file may not be read because of a budget: a sentence for the report. Otherwise "".
  std::string limit;
};

// `shown`: the name of the file in the report. A file is charged only once, even if it is needed again, or under
// another name. `is_separate`: the file contains only debug information, so the size of the whole file is limited, too.
DebugVerdict charge_debug_file(int fd, const ElfTables& tables, const std::string& shown, bool is_separate);

// Does the same for the symbol table in .gnu_debugdata.
DebugVerdict charge_mini_debug(int fd, const ElfSection& section, const std::string& shown);

// Returns the size in words, such as "6.4 GB".
std::string size_words(std::uint64_t bytes);

}  // namespace forksight::files
