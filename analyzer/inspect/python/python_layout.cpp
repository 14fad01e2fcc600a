// The offsets are those that the headers of each version give a compiler: Include/cpython and Include/internal of
// CPython 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1 (pycore_runtime.h, pycore_interp.h, pycore_gil.h, pycore_frame.h,
// pystate.h, frameobject.h, code.h, unicodeobject.h), by offsetof;
// tests/python_frames/offsets.c asks those that are there.
#include "inspect/python/python_layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

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

// _Py_DebugOffsets, up to what is needed: Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h of 3.14 and
// 3.15. All are 64-bit words. The parts that every version has alike come first.
struct HeadOffsets {
  std::array<char, 8> cookie;
  std::uint64_t version;  // PY_VERSION_HEX
  std::uint64_t free_threaded;
};
struct RuntimeOffsets {
  std::uint64_t size, finalizing, interpreters_head;
};
struct ObjectOffsets {
  std::uint64_t size, type;
};
struct TupleOffsets {
  std::uint64_t size, items, count;
};
struct BytesOffsets {
  std::uint64_t size, count, data;
};
struct UnicodeOffsets {
  std::uint64_t size, state, length, ascii_size;
};

struct DebugOffsets13 {
  static constexpr int kMinor = 13;
  HeadOffsets head;
  RuntimeOffsets runtime;
  struct {
    std::uint64_t size, id, next, threads_head, gc, imports_modules, sysdict, builtins, ceval_gil;
    std::uint64_t gil, gil_enabled, gil_locked, gil_holder;  // of the interpreter's own GIL
  } interpreter;
  struct {
    std::uint64_t size, prev, next, interpreter, current_frame, thread_id, native_thread_id, datastack_chunk, status;
  } thread;
  struct {
    std::uint64_t size, previous, executable, instruction, locals, owner;
  } frame;
  struct {
    std::uint64_t size, filename, name, qualname, line_table, first_line, argument_count, local_names, local_kinds;
    std::uint64_t instructions;
  } code;
  ObjectOffsets object;
  struct {
    std::uint64_t size, name, repr, flags;
  } type;
  TupleOffsets tuple;
  std::array<std::uint64_t, 3> list, dict;
  std::array<std::uint64_t, 2> float_object;
  std::array<std::uint64_t, 3> long_object;
  BytesOffsets bytes;
  UnicodeOffsets unicode;
};
static_assert(sizeof(DebugOffsets13) == 8 * 71);

// Without the GIL each thread may have a copy of the instructions: "thread-local bytecode".
struct InterpreterOffsets14 {
  std::uint64_t size, id, next, threads_head, threads_main, gc, imports_modules, sysdict, builtins, ceval_gil;
  std::uint64_t gil, gil_enabled, gil_locked, gil_holder, code_object_generation, instructions_generation;
};
struct FrameOffsets14 {
  std::uint64_t size, previous, executable, instruction, locals, owner, stack_pointer, copy_index;
};
struct CodeOffsets14 {
  std::uint64_t size, filename, name, qualname, line_table, first_line, argument_count, local_names, local_kinds;
  std::uint64_t instructions, copies;
};

struct DebugOffsets14 {
  static constexpr int kMinor = 14;
  HeadOffsets head;
  RuntimeOffsets runtime;
  InterpreterOffsets14 interpreter;
  struct {
    std::uint64_t size, prev, next, interpreter, current_frame, thread_id, native_thread_id, datastack_chunk, status;
  } thread;
  FrameOffsets14 frame;
  CodeOffsets14 code;
  ObjectOffsets object;
  struct {
    std::uint64_t size, name, repr, flags;
  } type;
  TupleOffsets tuple;
  std::array<std::uint64_t, 3> list;
  std::array<std::uint64_t, 4> set;
  std::array<std::uint64_t, 3> dict;
  std::array<std::uint64_t, 2> float_object;
  std::array<std::uint64_t, 3> long_object;
  BytesOffsets bytes;
  UnicodeOffsets unicode;
};
static_assert(sizeof(DebugOffsets14) == 8 * 81);

struct DebugOffsets15 {
  static constexpr int kMinor = 15;
  HeadOffsets head;
  RuntimeOffsets runtime;
  InterpreterOffsets14 interpreter;
  struct {
    std::uint64_t size, prev, next, interpreter, current_frame, base_frame, last_profiled_frame;
    std::uint64_t last_profiled_frame_sequence, thread_id, native_thread_id, datastack_chunk, status, holds_gil;
    std::uint64_t gil_requested, current_exception, exception_state;
  } thread;
  std::uint64_t exception_value;
  FrameOffsets14 frame;
  CodeOffsets14 code;
  ObjectOffsets object;
  struct {
    std::uint64_t size, name, repr, flags, basic_size, dictionary_offset;
  } type;
  std::array<std::uint64_t, 2> heap_type;
  TupleOffsets tuple;
  std::array<std::uint64_t, 3> list;
  std::array<std::uint64_t, 4> set;
  std::array<std::uint64_t, 3> dict;
  std::array<std::uint64_t, 2> float_object;
  std::array<std::uint64_t, 3> long_object;
  BytesOffsets bytes;
  UnicodeOffsets unicode;
};
static_assert(sizeof(DebugOffsets15) == 8 * 93);

constexpr std::uint64_t kHighestOffset = 1 << 20;  // PyInterpreterState of 3.13 has 0.3 MB
constexpr std::uint64_t kUtf8Fields = 16;          // what PyCompactUnicodeObject adds to PyASCIIObject

// Each member lies within its structure. So a table that is of another version than it says is not believed.
template <class Offsets>
bool is_consistent(const Offsets& offsets) {
  constexpr std::size_t kHead = sizeof(HeadOffsets) / 8;
  std::array<std::uint64_t, sizeof(Offsets) / 8> all{};
  std::memcpy(all.data(), &offsets, sizeof(all));
  if (std::any_of(all.begin() + kHead, all.end(), [](std::uint64_t offset) { return offset > kHighestOffset; }))
    return false;
  const auto fits = [](std::uint64_t size, std::initializer_list<std::uint64_t> members) {
    return std::ranges::all_of(members, [&](std::uint64_t member) { return member < size; });
  };
  const auto& interpreter = offsets.interpreter;
  const auto& thread = offsets.thread;
  const auto& frame = offsets.frame;
  const auto& code = offsets.code;
  return fits(offsets.runtime.size, {offsets.runtime.interpreters_head}) &&
         fits(interpreter.size, {interpreter.next, interpreter.threads_head, interpreter.ceval_gil, interpreter.gil,
                                 interpreter.gil_locked, interpreter.gil_holder}) &&
         interpreter.gil_locked >= interpreter.gil && interpreter.gil_holder >= interpreter.gil &&
         fits(thread.size,
              {thread.next, thread.interpreter, thread.current_frame, thread.thread_id, thread.native_thread_id}) &&
         fits(frame.size, {frame.previous, frame.executable, frame.instruction, frame.owner}) &&
         fits(code.size, {code.filename, code.name, code.line_table, code.first_line, code.local_names,
                          code.local_kinds, code.instructions}) &&
         fits(offsets.object.size, {offsets.object.type}) && fits(offsets.type.size, {offsets.type.name}) &&
         fits(offsets.tuple.size, {offsets.tuple.items, offsets.tuple.count}) &&
         fits(offsets.bytes.size, {offsets.bytes.count, offsets.bytes.data}) &&
         fits(offsets.unicode.size, {offsets.unicode.state, offsets.unicode.length, offsets.unicode.ascii_size});
}

template <class Offsets>
std::optional<PythonLayout> read_layout(const image::Memory& memory, std::uint64_t runtime) {
  const auto read = memory.value<Offsets>(runtime);
  if (!read || !is_consistent(*read)) return std::nullopt;
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
  layout.string_other = offsets.unicode.ascii_size + kUtf8Fields;
  // No table tells this one: struct _PyUnicodeObject_state in unicodeobject.h.
  if (Offsets::kMinor >= 14 && offsets.head.free_threaded != 0) layout.string_kind_shift = 8;
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
  const auto head = memory.value<HeadOffsets>(runtime);
  if (!head || std::memcmp(head->cookie.data(), "xdebugpy", head->cookie.size()) != 0) return std::nullopt;
  if (head->free_threaded > 1) return std::nullopt;
  switch (head->version >> 16U) {
    case 0x030D: return read_layout<DebugOffsets13>(memory, runtime);
    case 0x030E: return read_layout<DebugOffsets14>(memory, runtime);
    case 0x030F: return read_layout<DebugOffsets15>(memory, runtime);
    default: return std::nullopt;
  }
}

}  // namespace forksight::inspect
