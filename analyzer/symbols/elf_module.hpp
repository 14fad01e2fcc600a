// One ELF file and everything that is read from it. Addresses are link-time ones, so they are valid for every process
// that maps the file, at any place.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/elf_tables.hpp"
#include "result.hpp"
#include "symbols/symbols.hpp"

namespace forksight::symbols {

class ElfModule {
 public:
  // An error is one sentence for limits[]. Without a build-id the file is used unchecked.
  static Result<std::unique_ptr<ElfModule>> open(const Module& module);
  ~ElfModule();
  ElfModule(const ElfModule&) = delete;
  ElfModule& operator=(const ElfModule&) = delete;

  const std::string& path() const { return path_; }
  Dwfl_Module* dwfl() const { return module_; }

  // False: the debug information of the file itself would cost too much to unpack, or there is too much of it.
  bool may_read_debug() const { return may_read_debug_; }
  // False: the file has more call frame information than forksight reads.
  bool may_read_frames() const { return may_read_frames_; }

  // A file with debug information that belongs to this module. False: it must not be read; limits() says why.
  bool accept_debug_file(int fd, std::span<const std::uint8_t> build_id);
  // The build-id of dwz's shared file `name`, as the files with debug information have it; empty: none names it.
  std::vector<std::uint8_t> shared_part_build_id(std::string_view name) const;
  // The same for the file with the split debug information of a unit, where libdw would look for it.
  bool accept_split_file(const char* name, const char* folder);

  // What was left out because of a budget, a sentence each. Grows with use.
  const std::vector<std::string>& limits() const { return limits_; }
  void add_limit(std::string sentence);

  // The address of .eh_frame_hdr; 0 if the file has none.
  std::uint64_t unwind_table_address() const { return unwind_table_address_; }
  bool is_executable(std::uint64_t address) const;
  // The file's bytes from `address` to the end of its segment; empty if no segment of the file has it.
  std::span<const std::byte> bytes_at(std::uint64_t address) const;

 private:
  struct Segment {
    std::uint64_t start;
    std::uint64_t memory_bytes;
    std::uint64_t file_bytes;
    std::uint64_t file_offset;
    bool executable;
  };

  ElfModule() = default;
  const Segment* segment_of(std::uint64_t address) const;
  std::string find_fault(int fd);
  void note_shared_part(int fd, const files::ElfTables& tables);
  void hide_sections(Elf* elf) const;

  std::string path_;
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  std::span<const std::byte> image_;
  std::vector<Segment> segments_;
  std::uint64_t unwind_table_address_ = 0;
  bool may_read_debug_ = true;
  bool may_read_frames_ = true;
  std::vector<std::size_t> hidden_sections_;  // by number: libdw must not unpack them
  std::vector<std::string> debug_places_;     // of the files with debug information, the module itself among them
  std::vector<std::pair<std::string, std::vector<std::uint8_t>>> shared_parts_;  // by name
  std::vector<std::string> limits_;
};

}  // namespace forksight::symbols
