// The tables of an ELF file, read by pread before libelf and libdw see the file: what its headers claim decides how
// much these libraries would read, unpack and keep. Hostile input.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "result.hpp"

namespace forksight::files {

struct ElfSection {
  std::string name;  // up to 63 bytes of it
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;           // in the file; 0 for SHT_NOBITS
  std::uint64_t unpacked_size = 0;  // what a compressed section claims to unpack to; 0: it is not compressed
};

struct ElfTables {
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments;
  std::vector<ElfSection> sections;  // by number; empty: the file has none

  const ElfSection* find(std::string_view name) const;  // null: there is none
  std::uint64_t unpacked_bytes() const;                 // the sum of all claims
  std::uint64_t frame_bytes() const;                    // call frame information, by sections or by the program header
};

// An error says what makes the file impossible to read within the budgets, as the end of a sentence about it. Anything
// that is no 64-bit ELF file of this byte order is such an error: libdw would unpack an archive.
Result<ElfTables> read_tables(int fd);

// The build-id in the notes of the file; empty: it has none.
std::vector<std::uint8_t> read_build_id(int fd, const ElfTables& tables);

// The build-id in a segment or section of notes.
std::vector<std::uint8_t> find_build_id(std::span<const std::byte> notes, std::uint64_t alignment);

// What .gnu_debugdata unpacks to is more than kMaxMiniDebugBytes, or cannot be unpacked.
bool is_mini_debug_too_large(int fd, const ElfSection& section);

}  // namespace forksight::files
