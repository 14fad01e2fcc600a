// Parses a trace file: its header, and its committed records. The bytes of the file are not trusted. Each record that
// TraceFile returns has its fixed part and its whole tail. TraceFile does not check references between records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collect/chain.hpp"
#include "files/open_file.hpp"
#include "files/reader.hpp"
#include "forksight/abi/glibc.hpp"
#include "forksight/trace/format.hpp"
#include "result.hpp"

namespace forksight::collect {

struct TraceInfo {
  std::int32_t pid = 0;
  std::int32_t ppid = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t monotonic_ns = 0;
  int rank = -1;
  int world_size = -1;
  std::string host;
  std::string exe;
  std::vector<std::string> cmdline;
  bool cmdline_cut = false;
  abi::Libc libc;
  std::uint64_t dropped_records = 0;
  std::uint64_t dropped_bytes = 0;
};

class TraceFile {
 public:
  // The error is one sentence that names the file. If the writer has not finished creating the file, the result has no
  // records.
  static Result<TraceFile> read(const files::Reader& reader, const std::filesystem::path& path);
  static Result<TraceFile> parse(std::string name, std::vector<std::byte> bytes);

  TraceFile(TraceFile&&) = default;
  TraceFile& operator=(TraceFile&&) = default;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::string& name() const { return name_; }
  const TraceInfo& info() const { return info_; }
  const files::Owner& owner() const { return owner_; }  // of the file
  const std::vector<TraceRecord>& records() const { return records_; }
  // The bytes of the file. Empty if its writer has not finished creating it.
  std::span<const std::byte> bytes() const { return bytes_; }
  // The space that the file takes on disk. A file with holes takes less than its size.
  std::uint64_t disk_bytes() const { return disk_bytes_; }
  // True if records that matter may be missing. An example is the record of the end of a touch. (A touch is an
  // operation of a forked process on something that its fork broke.) If this record is missing, the operation wrongly
  // seems not to have returned.
  bool has_gaps() const { return has_gaps_; }
  // What is missing or strange in the file. Each limit is one sentence, which starts with the file name.
  const std::vector<std::string>& limits() const { return limits_; }

 private:
  TraceFile(std::string name, std::vector<std::byte> bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}
  std::optional<std::string> read_header();
  void walk_chain();
  void say(const std::string& what) { limits_.push_back(name_ + ": " + what); }

  bool has_gaps_ = false;
  std::string name_;
  files::Owner owner_;
  std::uint64_t disk_bytes_ = 0;
  std::vector<std::byte> bytes_;
  TraceInfo info_;
  std::vector<TraceRecord> records_;
  std::vector<std::string> limits_;
};

}  // namespace forksight::collect
