// Decides whether libdw may read a file with debug information, and charges the budget of the whole run for it.
#pragma once

#include <string>

#include "files/elf_tables.hpp"

namespace forksight::files {

struct DebugVerdict {
  bool may_read = false;
  std::string limit;  // a sentence for the report, if the file may not be read because of a budget; "" otherwise
};

// `shown`: how the report calls the file. A file is charged only once, even if others ask for it, or ask for it under
// another name. `is_separate`: the file contains only debug information, so the size of the file is limited too.
DebugVerdict charge_debug_file(int fd, const ElfTables& tables, const std::string& shown, bool is_separate);

// "6.4 GB"
std::string size_words(std::uint64_t bytes);

}  // namespace forksight::files
