// Reads strings, bytes and code objects of CPython from the memory of their process. For an object of another type the
// result is empty. The total amount that one reader reads and keeps is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "image/memory.hpp"
#include "inspect/python/python_layout.hpp"

namespace forksight::inspect {

struct PythonCode {
  std::string name;  // co_name, in UTF-8
  std::string file;
  int first_line = 0;
  std::uint64_t instructions = 0;  // address of the first instruction; 0 up to 3.10
  std::vector<std::byte> lines;
};

class PythonObjects {
 public:
  PythonObjects(const image::Memory& memory, const PythonLayout& layout) : memory_(memory), layout_(layout) {}

  // Returns null if there is no code object at the address. The result is cached, and is valid as long as this
  // PythonObjects exists.
  const PythonCode* code(std::uint64_t address);
  // The names of the local variables. The arguments come first, as in the code object.
  std::vector<std::string> local_names(std::uint64_t code);

  // Returns at most `most` characters, and leaves out the rest. A character that is not valid in UTF-8 becomes U+FFFD.
  std::string string(std::uint64_t address, std::size_t most);
  std::vector<std::byte> bytes(std::uint64_t address, std::size_t most);

  // Takes `size` from the amount that may still be read. Returns false if less was left.
  bool take_from_budget(std::size_t size);

 private:
  std::uint64_t word(std::uint64_t address) const { return memory_.value<std::uint64_t>(address).value_or(0); }
  bool is_code(std::uint64_t address);
  std::vector<std::byte> read(std::uint64_t address, std::size_t size);

  const image::Memory& memory_;
  const PythonLayout& layout_;
  std::map<std::uint64_t, PythonCode> codes_;  // an entry without name and file: no code object is there
  std::uint64_t code_type_ = 0;                // 0 until it is known
  std::size_t left_ = std::size_t{64} << 20U;
};

}  // namespace forksight::inspect
