// Writes the Python stacks of this process in the format of the interpreter's own traceback dumper, for CPython 3.13
// and later. These versions do not export the dumper, but describe the layout of their structures. The kernel copies
// all memory that is read (read_memory), so there is no fault, whatever the memory contains. This code calls no
// function of the interpreter, and takes no lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forksight {

// Offsets in the interpreter's structures; _Py_DebugOffsets has their names.
struct OwnPythonLayout {
  std::uint64_t runtime = 0;  // address of _PyRuntime; 0: none, or its layout is not known
  std::uint32_t interpreters, interpreter_next, threads;
  std::uint32_t thread_next, thread_interpreter, thread_id, thread_frame;
  std::uint32_t frame_previous, frame_code, frame_instruction, frame_owner;
  std::uint32_t code_file, code_name, code_first_line, code_lines, code_instructions;
  std::uint32_t object_type, type_name, bytes_size, bytes_data;
  std::uint32_t string_length, string_state, string_ascii;
};

// The layout of the interpreter whose _PyRuntime is at this address. `runtime` of the result is 0 for other versions,
// and for a build without the GIL, because other threads of such a build run while the calling thread reads.
OwnPythonLayout read_own_python_layout(std::uint64_t runtime);

// Writes the text. The caller provides memory for the text and for temporary data.
class OwnFrames {
 public:
  // `text` has room for `most` bytes, `scratch` for kScratchBytes, all zero.
  OwnFrames(const OwnPythonLayout& layout, char* text, std::uint32_t most, void* scratch);

  // Adds the stack of the thread with this PyThreadState.
  void add_one(std::uint64_t state);
  // Adds the stacks of all other threads.
  void add_others(std::uint64_t state);

  std::uint32_t bytes() const { return bytes_; }
  bool is_cut() const { return is_cut_; }  // the text had no room for all stacks

  static constexpr std::size_t kScratchBytes = 8192;

 private:
  struct Scratch;

  std::uint64_t word(std::uint64_t address) const;
  void add(char character);
  void add(const char* text);
  void add_number(std::uint64_t number, unsigned base, unsigned digits);
  void add_character(std::uint32_t character);
  void add_string(std::uint64_t address, std::uint64_t most);
  void add_frames(std::uint64_t state);
  bool add_frame(std::uint64_t code, std::uint64_t instruction);
  bool add_known_frame(std::uint64_t code, std::uint64_t instruction);
  bool is_code(std::uint64_t type);
  int find_line(std::uint64_t table, int first_line, std::uint64_t address);
  int byte_of_table(std::uint64_t table, std::uint64_t size, std::size_t index);

  const OwnPythonLayout& layout_;
  char* text_;
  std::uint32_t most_;
  Scratch& scratch_;
  std::uint32_t bytes_ = 0;
  bool is_cut_ = false;
  std::uint64_t code_type_ = 0;  // 0 until it is known
};

}  // namespace forksight
