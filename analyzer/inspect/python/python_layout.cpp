// The offsets are those that the headers of each version give a compiler: Include/cpython and Include/internal of
// CPython 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1 (pycore_runtime.h, pycore_interp.h, pycore_gil.h, pycore_frame.h,
// pystate.h, frameobject.h, code.h, unicodeobject.h), by offsetof;
// tests/python_frames/offsets.c asks those that are there.
#include "inspect/python/python_layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>

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

// _Py_DebugOffsets of 3.13, up to what is needed. All 64-bit words.
struct DebugOffsets {
  std::array<char, 8> cookie;
  std::uint64_t version;  // PY_VERSION_HEX
  std::uint64_t free_threaded;
  struct {
    std::uint64_t size, finalizing, interpreters_head;
  } runtime;
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
  struct {
    std::uint64_t size, type;
  } object;
  struct {
    std::uint64_t size, name, repr, flags;
  } type;
  struct {
    std::uint64_t size, items, count;
  } tuple;
  std::array<std::uint64_t, 3> list, dict;
  std::array<std::uint64_t, 2> float_object;
  std::array<std::uint64_t, 3> long_object;
  struct {
    std::uint64_t size, count, data;
  } bytes;
  struct {
    std::uint64_t size, state, length, ascii_size;
  } unicode;
};
static_assert(sizeof(DebugOffsets) == 8 * 71);

constexpr std::uint64_t kHighestOffset = 1 << 20;  // PyInterpreterState of 3.13 has 0.3 MB
constexpr std::uint64_t kUtf8Fields = 16;          // what PyCompactUnicodeObject adds to PyASCIIObject

}  // namespace

std::optional<PythonLayout> known_python_layout(int minor) {
  const auto found = std::ranges::find(kLayouts, minor, &PythonLayout::minor);
  return found == kLayouts.end() ? std::nullopt : std::optional(*found);
}

std::optional<PythonLayout> read_python_layout(const image::Memory& memory, std::uint64_t runtime) {
  const auto read = memory.value<DebugOffsets>(runtime);
  if (!read || std::memcmp(read->cookie.data(), "xdebugpy", read->cookie.size()) != 0) return std::nullopt;
  const DebugOffsets& offsets = *read;
  if (offsets.version >> 16U != 0x030D || offsets.free_threaded > 1) return std::nullopt;
  std::array<std::uint64_t, sizeof(DebugOffsets) / 8 - 3> all{};
  std::memcpy(all.data(), reinterpret_cast<const std::byte*>(&offsets) + 3 * sizeof(std::uint64_t), sizeof(all));
  if (std::ranges::any_of(all, [](std::uint64_t offset) { return offset > kHighestOffset; })) return std::nullopt;

  PythonLayout layout{.minor = 13, .lines = PythonLines::kLocations};
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
  return layout;
}

}  // namespace forksight::inspect
