// Reads the tables of an ELF file with pread, before libelf and libdw read the file. The file is hostile input, and the
// numbers in its headers decide how much these libraries read, unpack and keep.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "result.hpp"

namespace forksight::files {

struct ElfSection {
  std::string name;  // the first 63 bytes of the name
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;           // in the file; 0 for SHT_NOBITS
  std::uint64_t unpacked_size = 0;  // the size to which a compressed section claims to unpack; 0: it is not compressed
};

struct ElfTables {
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments;
  std::vector<ElfSection> sections;  // by number; empty: the file has no sections

  const ElfSection* find(std::string_view name) const;  // null: no section has this name
  std::uint64_t unpacked_bytes() const;                 // the sum of all unpacked_size
  // the size of the call frame information, according to the section headers or the program headers
  std::uint64_t frame_bytes() const;
};

// Reads the tables of the file. An error says why the file cannot be read within the budgets, as the end of a sentence
// about the file. Only a 64-bit ELF file of this byte order is accepted. libdw would also accept an archive, and unpack
// the archive.
Result<ElfTables> read_tables(int fd);

// Reads the build-id from the notes of the file. Empty: the file has no build-id.
std::vector<std::uint8_t> read_build_id(int fd, const ElfTables& tables);

// Finds the build-id in a segment or section of notes. Empty: there is no build-id.
std::vector<std::uint8_t> find_build_id(std::span<const std::byte> notes, std::uint64_t alignment);

// Returns the unpacked size of .gnu_debugdata. nullopt: the size is more than kMaxMiniDebugBytes, or the section cannot
// be unpacked.
std::optional<std::uint64_t> find_mini_debug_bytes(int fd, const ElfSection& section);

}  // namespace forksight::files
