// Reads the program headers and the build-id of an ELF file, from the file itself or from a process that maps it. Both
// are hostile input.
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
  std::vector<std::uint8_t> build_id;  // empty: the file has no build-id
  std::uint64_t first_address = 0;     // link-time address of the file's first byte, rounded down to a page
  std::uint64_t end_address = 0;       // link-time address behind the last segment, rounded up to a page

  // True if both describe the same program or library, as far as that can be known: both have the same build-id, or
  // neither has one and both have the same headers.
  bool is_same_file(const ElfHead& other) const;
};

// Reads the head of the file whose first byte is mapped at `start`. nullopt: this is not an x86-64 ELF file.
std::optional<ElfHead> read_mapped_head(const Memory& memory, std::uint64_t start);
// Reads the head of the file at `path`, which a process or core of `owner` names. `mapped`: the file that a process has
// mapped. See files::open_mapped().
std::optional<ElfHead> read_file_head(const files::Owner& owner, const std::string& path,
                                      const std::optional<files::MappedFile>& mapped = {});

// Reconstructs the file from its mapped parts. The copy lacks what was not mapped, which is mostly its sections. Its
// writable part has the changes that the process made. The copy is good enough for exported names and for unwinding.
// Returns nothing if the file is larger than `limit`, if more than `limit` bytes would be read, or if its code or
// tables cannot be read. Adds to `spent` the number of bytes that were read.
std::vector<std::byte> copy_mapped_file(const Memory& memory, std::uint64_t start, const ElfHead& head,
                                        std::size_t limit, std::size_t& spent);

}  // namespace forksight::image
