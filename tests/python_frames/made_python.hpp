// Made-up memory with the layout of an interpreter, and memory that records the reads from another memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "image/image.hpp"
#include "inspect/python/python_interpreter.hpp"

namespace forksight::test {

class SparseMemory final : public image::Memory {
 public:
  std::size_t read(std::uint64_t address, std::span<std::byte> bytes) const override;
  void write(std::uint64_t address, std::span<const std::byte> bytes);
  // Calls visit(address, bytes) for each piece that was written.
  template <class Visit>
  void for_each_piece(Visit visit) const {
    for (const auto& [page, bytes] : pages_) visit(page * kPage, std::span<const std::byte>(bytes));
  }

  template <class T>
  void put(std::uint64_t address, const T& value) {
    write(address, std::as_bytes(std::span(&value, 1)));
  }

 private:
  static constexpr std::uint64_t kPage = 256;
  std::map<std::uint64_t, std::vector<std::byte>> pages_;
};

// Passes each read on to another memory, and keeps a copy of the bytes.
class RecordingMemory final : public image::Memory {
 public:
  explicit RecordingMemory(std::shared_ptr<const image::Memory> source) : source_(std::move(source)) {}
  std::size_t read(std::uint64_t address, std::span<std::byte> bytes) const override;

  struct Read {
    std::uint64_t address;
    std::size_t size;
  };
  mutable SparseMemory copy;
  mutable std::vector<Read> reads;

 private:
  std::shared_ptr<const image::Memory> source_;
};

struct MadeFrame {
  std::uint64_t code = 0;
  int address = 0;  // offset of the instruction from the first one, in bytes
  std::uint8_t owner = 0;
  std::uint32_t copy = 0;  // which copy of the instructions the frame runs, if code has copies
};

// A version of CPython, and whether it is built without the GIL.
struct MadeVersion {
  int minor = 0;
  bool is_free_threaded = false;
};
// All versions that the analyzer knows.
std::vector<MadeVersion> made_versions();
std::string name_of(const MadeVersion& version);  // "3_14t"

// One made-up interpreter. As in CPython, the newest entry of a list is its first entry.
class MadePython {
 public:
  explicit MadePython(const inspect::PythonLayout& layout);
  // Returns the layout of a version: from the analyzer's table, or from the offsets with which the version describes
  // itself.
  static inspect::PythonLayout layout_of(const MadeVersion& version);
  // Returns the words with which the version describes itself: those that follow the cookie at the beginning of
  // _PyRuntime.
  static std::vector<std::uint64_t> offsets_of(const MadeVersion& version);

  std::uint64_t string(const std::u32string& text);
  std::uint64_t bytes(const std::vector<std::uint8_t>& data);
  std::uint64_t code(const std::u32string& name, const std::u32string& file, int first_line,
                     const std::vector<std::uint8_t>& lines, const std::vector<std::u32string>& locals = {});
  // Takes frames with the innermost first, and returns their addresses in this order.
  std::vector<std::uint64_t> frames(const std::vector<MadeFrame>& frames);
  std::uint64_t thread(std::uint64_t pointer, std::int32_t tid, std::uint64_t frame);

  image::Image image() const;
  inspect::PythonInterpreter interpreter() const { return {kRuntime, layout_}; }
  SparseMemory& memory() { return *memory_; }
  std::uint64_t first_interpreter() const { return interpreter_; }
  void give_gil(std::uint64_t thread);

  static constexpr std::uint64_t kRuntime = 0x10000;

 private:
  std::uint64_t allocate(std::size_t size);
  std::uint64_t object(std::size_t size, std::uint64_t type);

  inspect::PythonLayout layout_;
  std::shared_ptr<SparseMemory> memory_ = std::make_shared<SparseMemory>();
  std::uint64_t next_ = 0x100000;
  std::uint64_t interpreter_ = 0;
  std::uint64_t code_type_ = 0;
  std::uint64_t last_thread_ = 0;
};

}  // namespace forksight::test
