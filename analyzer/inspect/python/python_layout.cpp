// The offsets come from the headers of each version, by offsetof: Include/cpython and Include/internal of CPython
// 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1 (pycore_runtime.h, pycore_interp.h, pycore_gil.h, pycore_frame.h,
// pystate.h, frameobject.h, code.h, unicodeobject.h). tests/python_frames/offsets.c checks the offsets against the
// installed versions.
#include "inspect/python/python_layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "forksight/abi/python.hpp"

namespace forksight::inspect {
namespace {

// clang-format off
constexpr std::array<PythonLayout, 4> kLayouts{{
  {.minor = 9, .lines = PythonLines::kDeltas,
   .interpreters = 32, .runtime_gil = 352,
   .interpreter_next = 0, .threads = 8,
   .thread_id = 176, .thread_frame = 24,
   .frame_back = 24, .frame_code = 32, .frame_instruction = 104,
   .code_first_line = 40, .code_file = 104, .code_name = 112, .code_lines = 120, .code_local_names = 72,
   .string_ascii = 48, .string_other = 72},
  {.minor = 10, .lines = PythonLines::kRanges,
   .interpreters = 32, .runtime_gil = 352,
   .interpreter_next = 0, .threads = 8,
   .thread_id = 176, .thread_frame = 24,
   .frame_back = 24, .frame_code = 32, .frame_instruction = 96, .frame_line = 100,
   .code_first_line = 40, .code_file = 104, .code_name = 112, .code_lines = 120, .code_local_names = 72,
   .string_ascii = 48, .string_other = 72},
  {.minor = 11, .lines = PythonLines::kLocations,
   .interpreters = 40, .runtime_gil = 360,
   .interpreter_next = 0, .threads = 16,
   .thread_id = 152, .native_id = 160, .thread_frame = 56, .has_cframe = 1, .cframe_frame = 8,
   .frame_back = 48, .frame_code = 32, .frame_instruction = 56, .frame_owner = 69,
   .code_first_line = 72, .code_file = 112, .code_name = 120, .code_lines = 136, .code_instructions = 184,
   .code_local_names = 96, .code_local_kinds = 104,
   .string_ascii = 48, .string_other = 72},
  {.minor = 12, .lines = PythonLines::kLocations,
   .interpreters = 40,
   .interpreter_next = 0, .threads = 72, .interpreter_gil = 384,
   .thread_id = 136, .native_id = 144, .thread_frame = 56, .has_cframe = 1, .cframe_frame = 0,
   .frame_back = 8, .frame_code = 0, .frame_instruction = 56, .frame_owner = 70,
   .code_first_line = 68, .code_file = 112, .code_name = 120, .code_lines = 136, .code_instructions = 192,
   .code_local_names = 96, .code_local_kinds = 104,
   .string_ascii = 40, .string_other = 56},
}};
// clang-format on

template <class Offsets>
std::optional<PythonLayout> read_layout(const image::Memory& memory, std::uint64_t runtime) {
  const auto read = memory.value<Offsets>(runtime);
  if (!read || !abi::is_consistent(*read)) return std::nullopt;
  const Offsets& offsets = *read;
  PythonLayout layout{.minor = Offsets::kMinor, .lines = PythonLines::kLocations};
  layout.interpreters = offsets.runtime.interpreters_head;
  layout.interpreter_next = offsets.interpreter.next;
  layout.threads = offsets.interpreter.threads_head;
  layout.interpreter_gil = offsets.interpreter.ceval_gil;
  layout.gil_holder = offsets.interpreter.gil_holder - offsets.interpreter.gil;
  layout.gil_locked = offsets.interpreter.gil_locked - offsets.interpreter.gil;
  layout.thread_next = offsets.thread.next;
  layout.thread_interpreter = offsets.thread.interpreter;
  layout.thread_id = offsets.thread.thread_id;
  layout.native_id = offsets.thread.native_thread_id;
  layout.thread_frame = offsets.thread.current_frame;
  layout.frame_back = offsets.frame.previous;
  layout.frame_code = offsets.frame.executable;
  layout.frame_instruction = offsets.frame.instruction;
  layout.frame_owner = offsets.frame.owner;
  layout.code_first_line = offsets.code.first_line;
  layout.code_file = offsets.code.filename;
  layout.code_name = offsets.code.name;
  layout.code_lines = offsets.code.line_table;
  layout.code_instructions = offsets.code.instructions;
  layout.code_local_names = offsets.code.local_names;
  layout.code_local_kinds = offsets.code.local_kinds;
  layout.object_type = offsets.object.type;
  layout.type_name = offsets.type.name;
  layout.bytes_size = offsets.bytes.count;
  layout.bytes_data = offsets.bytes.data;
  layout.tuple_size = offsets.tuple.count;
  layout.tuple_items = offsets.tuple.items;
  layout.string_length = offsets.unicode.length;
  layout.string_state = offsets.unicode.state;
  layout.string_ascii = offsets.unicode.ascii_size;
  layout.string_other = offsets.unicode.ascii_size + abi::kPythonUtf8Fields;
  layout.string_kind_shift = abi::python_string_kind_shift(Offsets::kMinor, offsets.head.free_threaded != 0);
  if constexpr (requires { offsets.code.copies; }) {
    layout.code_copies = offsets.code.copies;
    layout.frame_copy_index = offsets.frame.copy_index;
  }
  return layout;
}

}  // namespace

std::optional<PythonLayout> known_python_layout(int minor) {
  const auto found = std::ranges::find(kLayouts, minor, &PythonLayout::minor);
  return found == kLayouts.end() ? std::nullopt : std::optional(*found);
}

std::optional<PythonLayout> read_python_layout(const image::Memory& memory, std::uint64_t runtime) {
  const auto head = memory.value<abi::PythonHeadOffsets>(runtime);
  if (!head || std::memcmp(head->cookie, abi::kPythonCookie, sizeof(head->cookie)) != 0) return std::nullopt;
  if (head->free_threaded > 1) return std::nullopt;
  switch (head->version >> 16U) {
    case 0x030D: return read_layout<abi::PythonOffsets13>(memory, runtime);
    case 0x030E: return read_layout<abi::PythonOffsets14>(memory, runtime);
    case 0x030F: return read_layout<abi::PythonOffsets15>(memory, runtime);
    default: return std::nullopt;
  }
}

}  // namespace forksight::inspect
