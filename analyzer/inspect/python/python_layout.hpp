// Offsets in CPython's structures on x86-64 Linux, for each version. CPython makes its own tracebacks from the same
// data.
#pragma once

#include <cstdint>
#include <optional>

#include "image/memory.hpp"

namespace forksight::inspect {

constexpr int kFirstPythonMinor = 9;  // 3.9
constexpr int kLastPythonMinor = 15;
constexpr int kFirstDescribedMinor = 13;  // from this version on the interpreter describes its layout itself

enum class PythonLines {
  kDeltas,     // 3.9: co_lnotab
  kRanges,     // 3.10: co_linetable of PEP 626
  kLocations,  // 3.11 and later: co_linetable with columns
};

// Most members are offsets in the struct that the comment above them names. The comment after a member says what is at
// the offset. "or 0" in that comment means: the offset is 0 if this version has no such member.
struct PythonLayout {
  int minor = 0;
  PythonLines lines = PythonLines::kLocations;

  // _PyRuntimeState
  std::uint64_t interpreters = 0;  // pointer to the first interpreter
  std::uint64_t runtime_gil = 0;   // struct _gil_runtime_state in _PyRuntimeState, or 0

  // PyInterpreterState
  std::uint64_t interpreter_next = 0;
  std::uint64_t threads = 0;          // pointer to the first thread state
  std::uint64_t interpreter_gil = 0;  // pointer to a struct _gil_runtime_state, or 0

  // struct _gil_runtime_state
  std::uint64_t gil_holder = 8;  // the last holder: a PyThreadState*
  std::uint64_t gil_locked = 16;

  // PyThreadState
  std::uint64_t thread_next = 8;
  std::uint64_t thread_interpreter = 16;
  std::uint64_t thread_id = 0;     // pthread_self()
  std::uint64_t native_id = 0;     // or 0
  std::uint64_t thread_frame = 0;  // pointer to the innermost frame, or to the _PyCFrame that points to it
  std::uint64_t has_cframe = 0;
  std::uint64_t cframe_frame = 0;

  // PyFrameObject up to 3.10, then _PyInterpreterFrame
  std::uint64_t frame_back = 0;
  std::uint64_t frame_code = 0;
  std::uint64_t frame_instruction = 0;  // f_lasti; in later versions a pointer into the code
  std::uint64_t frame_line = 0;         // f_lineno, which is valid unless it is 0; or 0
  std::uint64_t frame_owner = 0;        // or 0
  std::uint64_t frame_copy_index = 0;   // which copy of the code's instructions the frame runs; or 0

  // PyCodeObject
  std::uint64_t code_first_line = 0;
  std::uint64_t code_file = 0;
  std::uint64_t code_name = 0;
  std::uint64_t code_lines = 0;
  std::uint64_t code_instructions = 0;  // or 0
  std::uint64_t code_local_names = 0;   // a tuple
  std::uint64_t code_local_kinds = 0;   // bytes, one for each name; or 0: the names are only those of locals
  std::uint64_t code_copies = 0;        // pointer to the number of copies of its instructions and to each copy; or 0

  // PyObject and types derived from it
  std::uint64_t object_type = 8;
  std::uint64_t type_name = 24;
  std::uint64_t bytes_size = 16;
  std::uint64_t bytes_data = 32;
  std::uint64_t tuple_size = 16;
  std::uint64_t tuple_items = 24;
  std::uint64_t string_length = 16;
  std::uint64_t string_state = 32;
  unsigned string_kind_shift = 2;  // position of the width in the state; the two bits above are "compact", "ASCII"
  std::uint64_t string_ascii = 0;  // the characters, if they are all ASCII
  std::uint64_t string_other = 0;  // the characters otherwise
};

// Returns the layout of a release of CPython 3.9 to 3.12. nullopt: another version.
std::optional<PythonLayout> known_python_layout(int minor);

// Reads the layout of CPython 3.13 to 3.15. In these versions, the table _Py_DebugOffsets at the start of _PyRuntime
// describes the layout. nullopt: there is no such table, the table belongs to another version, or it contains an
// impossible offset.
std::optional<PythonLayout> read_python_layout(const image::Memory& memory, std::uint64_t runtime);

}  // namespace forksight::inspect
