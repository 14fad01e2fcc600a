// The notes of a core file: what the kernel wrote about the process and its threads. Layouts: struct elf_prstatus and
// elf_prpsinfo of <sys/procfs.h>; NT_FILE as in the kernel's fs/binfmt_elf.c.
#pragma once

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace forksight::image {

struct CoreThread {
  std::int32_t tid = 0;
  std::int32_t signal = 0;
  user_regs_struct registers{};
};

// A mapped piece of a file.
struct CoreMapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::string path;
};

struct CoreNotes {
  std::vector<CoreThread> threads;  // in the order of the file: the first one got the signal that caused the core
  std::int32_t pid = 0;             // 0: the core does not have it
  std::int32_t ppid = 0;
  std::int32_t group = 0;     // the process group
  std::uint32_t uid = 65534;  // of the process; 65534: not known
  std::uint32_t gid = 65534;
  std::string name;                                  // of the program; at most 15 bytes
  std::string arguments;                             // at most 79 bytes of the arguments, separated by blanks
  std::vector<CoreMapping> files;                    // ascending
  std::map<std::uint64_t, std::uint64_t> auxiliary;  // AT_... of <elf.h>
  std::vector<std::byte> auxiliary_bytes;
};

// Decodes what can be read. An invalid note is left out. A note that is cut ends the list.
CoreNotes decode_notes(std::span<const std::byte> notes);

}  // namespace forksight::image
