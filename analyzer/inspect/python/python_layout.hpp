// Where CPython keeps what its own tracebacks are made of: offsets in its structures on x86-64 Linux, by version.
#pragma once

#include <cstdint>
#include <optional>

#include "image/memory.hpp"

namespace forksight::inspect {

constexpr int kFirstPythonMinor = 9;  // 3.9
constexpr int kLastPythonMinor = 15;
constexpr int kFirstDescribedMinor = 13;  // from here on the interpreter tells its layout itself

enum class PythonLines {
  kDeltas,     // 3.9: co_lnotab
  kRanges,     // 3.10: co_linetable of PEP 626
  kLocations,  // 3.11 and later: co_linetable with columns
};

// Offset 0 in the fields that say "or 0": there is no such thing in this version.
struct PythonLayout {
  int minor = 0;
  PythonLines lines = PythonLines::kLocations;

  // _PyRuntimeState
  std::uint64_t interpreters = 0;  // the first
  std::uint64_t runtime_gil = 0;   // struct _gil_runtime_state in it, or 0

  // PyInterpreterState
  std::uint64_t interpreter_next = 0;
  std::uint64_t threads = 0;          // the first
  std::uint64_t interpreter_gil = 0;  // pointer to a struct _gil_runtime_state, or 0

  // struct _gil_runtime_state
  std::uint64_t gil_holder = 8;  // the last one: a PyThreadState*
  std::uint64_t gil_locked = 16;

  // PyThreadState
  std::uint64_t thread_next = 8;
  std::uint64_t thread_interpreter = 16;
  std::uint64_t thread_id = 0;     // pthread_self()
  std::uint64_t native_id = 0;     // or 0
  std::uint64_t thread_frame = 0;  // pointer to the innermost frame, or to the _PyCFrame that has it
  std::uint64_t has_cframe = 0;
  std::uint64_t cframe_frame = 0;

  // PyFrameObject up to 3.10, then _PyInterpreterFrame
  std::uint64_t frame_back = 0;
  std::uint64_t frame_code = 0;
  std::uint64_t frame_instruction = 0;  // f_lasti, then a pointer into the code
  std::uint64_t frame_line = 0;         // f_lineno, which counts unless it is 0; or 0
  std::uint64_t frame_owner = 0;        // or 0
  std::uint64_t frame_copy_index = 0;   // which of the code's copies of its instructions it runs; or 0

  // PyCodeObject
  std::uint64_t code_first_line = 0;
  std::uint64_t code_file = 0;
  std::uint64_t code_name = 0;
  std::uint64_t code_lines = 0;
  std::uint64_t code_instructions = 0;  // or 0
  std::uint64_t code_local_names = 0;   // a tuple
  std::uint64_t code_local_kinds = 0;   // bytes, one a name; or 0: the names are of locals alone
  std::uint64_t code_copies = 0;        // pointer to the count of copies of its instructions and to each; or 0

  // PyObject and what is made of it
  std::uint64_t object_type = 8;
  std::uint64_t type_name = 24;
  std::uint64_t bytes_size = 16;
  std::uint64_t bytes_data = 32;
  std::uint64_t tuple_size = 16;
  std::uint64_t tuple_items = 24;
  std::uint64_t string_length = 16;
  std::uint64_t string_state = 32;
  unsigned string_kind_shift = 2;  // in the state; two bits above the width are "compact" and "ASCII"
  std::uint64_t string_ascii = 0;  // characters, if they are all ASCII
  std::uint64_t string_other = 0;  // characters otherwise
};

// Of a release of CPython 3.9 to 3.12. nullopt: another version.
std::optional<PythonLayout> known_python_layout(int minor);

// Of 3.13 to 3.15, which say themselves where things are: _Py_DebugOffsets, at the start of _PyRuntime. nullopt: there
// is none there, or it is of another version, or no offset could be as it says.
std::optional<PythonLayout> read_python_layout(const image::Memory& memory, std::uint64_t runtime);

}  // namespace forksight::inspect
