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
#include <vector>

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

  std::string path_;
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  std::span<const std::byte> image_;
  std::vector<Segment> segments_;
  std::uint64_t unwind_table_address_ = 0;
};

}  // namespace forksight::symbols
