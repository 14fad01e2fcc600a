// Made-up processes, for tests of the code that builds a model of processes. Their modules are the ELF files that this
// test has loaded. Tests write all other memory byte by byte. A thread's stack is a list of functions. Each function is
// at its first instruction, so its frame is only the return address.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "image/image.hpp"
#include "inspect/build_model.hpp"

namespace forksight::test {

class MadeMemory final : public image::Memory {
 public:
  void put(std::uint64_t address, std::span<const std::uint8_t> bytes);
  std::size_t read(std::uint64_t address, std::span<std::byte> bytes) const override;

 private:
  std::map<std::uint64_t, std::uint8_t> bytes_;
};

inline constexpr std::uint64_t kHeap = 0x7e00'0000'0000;        // private
inline constexpr std::uint64_t kSharedHeap = 0x7e10'0000'0000;  // a shared mapping
inline constexpr std::uint64_t kHeapBytes = 0x10'0000;

// Returns the run-time address of the function or object with this symbol. Throws if there is none.
std::uint64_t address_of(const std::string& symbol);
// Returns the path of the module whose file name starts with `file_prefix`, for example "libc.so".
std::string path_of(const std::string& file_prefix);

using Names = std::vector<std::string>;  // functions, innermost first

// Addresses of structs pthread. A search of memory finds a struct at kFoundPointer. The struct of a first thread is at
// kMainPointer.
inline constexpr std::uint64_t kFoundPointer = kHeap + kHeapBytes - 0x1000;
inline constexpr std::uint64_t kMainPointer = kHeap + 0x8'0000;

class MadeProcess {
 public:
  MadeProcess(std::int32_t pid, std::int32_t ppid);

  // Adds a thread that sleeps in a futex wait for `word`, or in pause() if `word` is 0.
  image::Thread& add_thread(std::int32_t tid, const Names& stack, std::uint64_t word = 0);
  // Does what add_thread() does, but the thread's struct pthread is at `pointer`.
  image::Thread& add_thread_at(std::uint64_t pointer, std::int32_t tid, const Names& stack, std::uint64_t word = 0);
  void put(std::uint64_t address, std::span<const std::uint8_t> bytes) { memory_->put(address, bytes); }
  void put_word(std::uint64_t address, std::uint32_t word);
  // Writes a struct pthread at kFoundPointer, as if a thread's stack ended there. With tid 0, it is the struct of a
  // lost thread.
  void put_pthread(std::int32_t tid);

  image::Image image;

 private:
  std::shared_ptr<MadeMemory> memory_;
  std::uint64_t next_stack_;
};

// Returns the parent and the child as subjects. The child can never continue, and the parent waits for the child.
std::vector<inspect::Subject> family(const MadeProcess& parent, const MadeProcess& child);
// Returns one wait for each thread. It is a futex wait if the thread sleeps in a futex.
std::vector<model::Wait> waits_of(const image::Image& image);

}  // namespace forksight::test
