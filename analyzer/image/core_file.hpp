// The structure of a core file (elf(5), ET_CORE): segments of memory, and notes. A core is hostile input. This class
// checks all offsets and sizes: `Segment::bytes` counts only bytes that the file contains.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/open_file.hpp"
#include "result.hpp"

namespace forksight::image {

class CoreFile {
 public:
  struct Segment {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;   // the file contains this many bytes, from `start` on
    std::uint64_t offset = 0;  // where these bytes begin in the file
    std::uint32_t flags = 0;   // PF_R and so on
  };

  // An error is one sentence. It says what the file is instead of a core, and what to do with it.
  static Result<CoreFile> open(const std::string& path);
  CoreFile(CoreFile&& other) noexcept;
  ~CoreFile();
  CoreFile& operator=(CoreFile&&) = delete;

  const std::vector<Segment>& segments() const { return segments_; }  // ascending, without overlaps
  // The notes about threads, the process, its files and its auxiliary vector, one after the other.
  const std::vector<std::byte>& notes() const { return notes_; }
  // Frees the memory of the notes, which is a third of a kilobyte for each thread.
  void forget_notes() { std::vector<std::byte>().swap(notes_); }
  const files::Owner& owner() const { return owner_; }            // of the file
  std::uint64_t missing_bytes() const { return missing_bytes_; }  // bytes that the headers list and the file lacks

  // Returns the number of bytes read. Uses pread: if the file is truncated meanwhile, the read is short. A mapping
  // would raise SIGBUS instead.
  std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  explicit CoreFile(int fd) : fd_(fd) {}
  Result<std::vector<Elf64_Phdr>> read_table(const std::string& path, const Elf64_Ehdr& header) const;
  void add(const Elf64_Phdr& entry);
  void add_notes(std::uint64_t offset, std::uint64_t size);

  int fd_;
  std::uint64_t size_ = 0;
  files::Owner owner_;
  std::uint64_t notes_visited_ = 0;
  std::uint64_t note_bytes_read_ = 0;
  bool has_too_many_notes_ = false;
  bool has_too_many_threads_ = false;
  std::uint64_t missing_bytes_ = 0;
  std::vector<Segment> segments_;
  std::vector<std::byte> notes_;
};

}  // namespace forksight::image
