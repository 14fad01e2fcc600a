// One ELF file, and everything that is read from it. Addresses are link-time addresses. So an address is valid for
// every process that maps the file, no matter where the process maps the file.
#pragma once

#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/costly_files.hpp"
#include "files/elf_tables.hpp"
#include "result.hpp"
#include "symbols/symbols.hpp"

namespace forksight::symbols {

class ElfModule {
 public:
  // Opens the file of `module`. An error is one sentence for the report's limits. The error is empty if
  // files::describe_read_limit_of_all() says what is left out. If `module` has no build-id, the file
  // is used without a check.
  static Result<std::unique_ptr<ElfModule>> open(const Module& module);
  ~ElfModule();
  ElfModule(const ElfModule&) = delete;
  ElfModule& operator=(const ElfModule&) = delete;

  const std::string& path() const { return path_; }
  const files::Owner& owner() const { return owner_; }
  Dwfl_Module* dwfl() const { return module_; }

  // False if the file itself contains too much debug information, or debug information that costs too much to unpack.
  bool may_read_debug() const { return may_read_debug_ && read_limit() < files::ReadLimit::kNoDebug; }
  // False if the file has more call frame information than forksight reads.
  bool may_read_frames() const { return may_read_frames_ && may_read_code(); }
  // False if neither relocations nor machine code are read, because the file is too costly.
  bool may_read_code() const { return read_limit() < files::ReadLimit::kNoFrames; }
  // True if an earlier attempt to read the file was too costly, or if the work on all files together has taken too much
  // time (files/costly_files.hpp). No debug file is searched.
  bool is_limited() const { return read_limit() != files::ReadLimit::kNone; }

  // True if the file `fd` is debug information of this module and may be read. If the file may not be read because of a
  // budget, limits() says so.
  bool accept_debug_file(int fd, std::span<const std::uint8_t> build_id);
  // Returns the build-id of dwz's shared file `name`. Each file that links to the shared file contains this build-id.
  // Returns an empty build-id if no file links to the shared file.
  std::vector<std::uint8_t> shared_part_build_id(std::string_view name) const;
  // Like accept_debug_file(), but for the split debug information of a unit. Checks all places where libdw would look
  // for the file.
  bool accept_split_file(const char* name, const char* folder);

  // Returns a sentence for each part that was left out because of a budget, or because it could not be read. The list
  // grows when more parts are read.
  const std::vector<std::string>& limits() const { return limits_; }
  void add_limit(std::string sentence);

  // Returns the address of .eh_frame_hdr; 0 if the file has no .eh_frame_hdr.
  std::uint64_t unwind_table_address() const { return unwind_table_address_; }
  bool is_executable(std::uint64_t address) const;
  // Returns the file's bytes from `address` to the end of its segment; empty if no segment of the file contains
  // `address`.
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
  files::ReadLimit read_limit() const { return std::max(read_limit_, files::read_limit_of_all(is_program_)); }
  const Segment* segment_of(std::uint64_t address) const;
  std::string find_fault(int fd);
  void note_shared_part(int fd, const files::ElfTables& tables);
  void hide_sections(Elf* elf) const;

  std::string path_;
  files::Owner owner_;
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  std::span<const std::byte> image_;
  std::vector<Segment> segments_;
  std::uint64_t unwind_table_address_ = 0;
  bool may_read_debug_ = true;
  bool may_read_frames_ = true;
  bool is_program_ = false;
  files::ReadLimit read_limit_ = files::ReadLimit::kNone;  // because of earlier attempts to read this file
  std::vector<std::size_t> hidden_sections_;  // indices of the sections that libdw must not unpack
  std::vector<std::string> debug_places_;     // paths of the files with debug information, and of the module itself
  std::vector<std::pair<std::string, std::vector<std::uint8_t>>> shared_parts_;  // names and build-ids
  std::vector<std::string> limits_;
};

}  // namespace forksight::symbols
