// The first facts of an ELF file, from the file itself or from a process that maps it: program headers and build-id.
// Either may be hostile.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "files/open_file.hpp"
#include "image/memory.hpp"

namespace forksight::image {

struct ElfHead {
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments;
  std::vector<std::uint8_t> build_id;  // empty: has none
  std::uint64_t first_address = 0;     // link-time, of the file's first byte; a multiple of the page size
  std::uint64_t end_address = 0;       // link-time, behind the last segment; likewise

  // Both describe the same program or library, as far as can be known: they have the same build-id, or, without any,
  // the same headers.
  bool is_same_file(const ElfHead& other) const;
};

// Reads the head of the file whose first byte is mapped at `start`. nullopt: it is no x86-64 ELF file.
std::optional<ElfHead> read_mapped_head(const Memory& memory, std::uint64_t start);
// `mapped`: the file that a process has mapped and that is looked for at `path`. See files::open_mapped().
std::optional<ElfHead> read_file_head(const std::string& path, const std::optional<files::MappedFile>& mapped = {});

// The file, reconstructed from its mapped parts: it has no sections, and its writable part has changed. It serves for
// exported names and unwinding. Empty if it is larger than `limit`, or if its code or tables cannot be read. Adds to
// `spent` what was read of the memory.
std::vector<std::byte> copy_mapped_file(const Memory& memory, std::uint64_t start, const ElfHead& head,
                                        std::size_t limit, std::size_t& spent);

}  // namespace forksight::image
