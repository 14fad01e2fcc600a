// Whether a file with debug information may be handed to libdw, and what that costs of the budget of the whole run.
#pragma once

#include <string>

#include "files/elf_tables.hpp"

namespace forksight::files {

struct DebugVerdict {
  bool may_read = false;
  std::string limit;  // if it may not be read: a sentence for the report; "": the file is just no debug file
};

// `shown`: how the report calls the file. A file that was charged once is not charged again, whoever asks and by
// whatever name. `is_separate`: it has nothing but debug information, so that the size of the file is limited, too.
DebugVerdict charge_debug_file(int fd, const ElfTables& tables, const std::string& shown, bool is_separate);

// "6.4 GB"
std::string size_words(std::uint64_t bytes);

}  // namespace forksight::files
