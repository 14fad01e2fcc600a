// _Py_DebugOffsets, at the start of _PyRuntime: with this table, CPython 3.13 and later describe their own layout. This
// header also reads CPython's tables of line numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forksight::abi {

inline constexpr char kPythonCookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};

// The needed parts of _Py_DebugOffsets. Its source is Include/internal/pycore_runtime.h in 3.13, and
// pycore_debug_offsets.h in 3.14 and 3.15. All members are 64-bit words. The structs that follow here are the same in
// every version. PythonOffsets13, PythonOffsets14 and PythonOffsets15 have the rest.
struct PythonHeadOffsets {
  char cookie[8];
  std::uint64_t version;  // PY_VERSION_HEX
  std::uint64_t free_threaded;
};
struct PythonRuntimeOffsets {
  std::uint64_t size, finalizing, interpreters_head;
};
struct PythonObjectOffsets {
  std::uint64_t size, type;
};
struct PythonTupleOffsets {
  std::uint64_t size, items, count;
};
struct PythonBytesOffsets {
  std::uint64_t size, count, data;
};
struct PythonUnicodeOffsets {
  std::uint64_t size, state, length, ascii_size;
};

struct PythonOffsets13 {
  static constexpr int kMinor = 13;
  PythonHeadOffsets head;
  PythonRuntimeOffsets runtime;
  struct {
    std::uint64_t size, id, next, threads_head, gc, imports_modules, sysdict, builtins, ceval_gil;
    std::uint64_t gil, gil_enabled, gil_locked, gil_holder;  // of the GIL of the interpreter itself
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
  PythonObjectOffsets object;
  struct {
    std::uint64_t size, name, repr, flags;
  } type;
  PythonTupleOffsets tuple;
  std::uint64_t list[3], dict[3];
  std::uint64_t float_object[2];
  std::uint64_t long_object[3];
  PythonBytesOffsets bytes;
  PythonUnicodeOffsets unicode;
};
static_assert(sizeof(PythonOffsets13) == 8 * 71);

// Without the GIL each thread may have its own copy of the instructions: "thread-local bytecode".
struct PythonInterpreterOffsets14 {
  std::uint64_t size, id, next, threads_head, threads_main, gc, imports_modules, sysdict, builtins, ceval_gil;
  std::uint64_t gil, gil_enabled, gil_locked, gil_holder, code_object_generation, instructions_generation;
};
struct PythonFrameOffsets14 {
  std::uint64_t size, previous, executable, instruction, locals, owner, stack_pointer, copy_index;
};
struct PythonCodeOffsets14 {
  std::uint64_t size, filename, name, qualname, line_table, first_line, argument_count, local_names, local_kinds;
  std::uint64_t instructions, copies;
};

struct PythonOffsets14 {
  static constexpr int kMinor = 14;
  PythonHeadOffsets head;
  PythonRuntimeOffsets runtime;
  PythonInterpreterOffsets14 interpreter;
  struct {
    std::uint64_t size, prev, next, interpreter, current_frame, thread_id, native_thread_id, datastack_chunk, status;
  } thread;
  PythonFrameOffsets14 frame;
  PythonCodeOffsets14 code;
  PythonObjectOffsets object;
  struct {
    std::uint64_t size, name, repr, flags;
  } type;
  PythonTupleOffsets tuple;
  std::uint64_t list[3];
  std::uint64_t set[4];
  std::uint64_t dict[3];
  std::uint64_t float_object[2];
  std::uint64_t long_object[3];
  PythonBytesOffsets bytes;
  PythonUnicodeOffsets unicode;
};
static_assert(sizeof(PythonOffsets14) == 8 * 81);

struct PythonOffsets15 {
  static constexpr int kMinor = 15;
  PythonHeadOffsets head;
  PythonRuntimeOffsets runtime;
  PythonInterpreterOffsets14 interpreter;
  struct {
    std::uint64_t size, prev, next, interpreter, current_frame, base_frame, last_profiled_frame;
    std::uint64_t last_profiled_frame_sequence, thread_id, native_thread_id, datastack_chunk, status, holds_gil;
    std::uint64_t gil_requested, current_exception, exception_state;
  } thread;
  std::uint64_t exception_value;
  PythonFrameOffsets14 frame;
  PythonCodeOffsets14 code;
  PythonObjectOffsets object;
  struct {
    std::uint64_t size, name, repr, flags, basic_size, dictionary_offset;
  } type;
  std::uint64_t heap_type[2];
  PythonTupleOffsets tuple;
  std::uint64_t list[3];
  std::uint64_t set[4];
  std::uint64_t dict[3];
  std::uint64_t float_object[2];
  std::uint64_t long_object[3];
  PythonBytesOffsets bytes;
  PythonUnicodeOffsets unicode;
};
static_assert(sizeof(PythonOffsets15) == 8 * 93);

inline constexpr std::uint64_t kHighestPythonOffset = 1 << 20;  // for comparison: PyInterpreterState of 3.13 has 0.3 MB
inline constexpr std::uint64_t kPythonUtf8Fields = 16;          // what PyCompactUnicodeObject adds to PyASCIIObject

// True if each member lies within its structure. A table that claims a wrong version usually fails this test.
template <class Offsets>
constexpr bool is_consistent(const Offsets& offsets) {
  const auto fits = [](std::uint64_t size, auto... members) {
    return size <= kHighestPythonOffset && ((members < size) && ...);
  };
  const auto& interpreter = offsets.interpreter;
  const auto& thread = offsets.thread;
  const auto& frame = offsets.frame;
  const auto& code = offsets.code;
  return fits(offsets.runtime.size, offsets.runtime.interpreters_head) &&
         fits(interpreter.size, interpreter.next, interpreter.threads_head, interpreter.ceval_gil, interpreter.gil,
              interpreter.gil_locked, interpreter.gil_holder) &&
         interpreter.gil_locked >= interpreter.gil && interpreter.gil_holder >= interpreter.gil &&
         fits(thread.size, thread.next, thread.interpreter, thread.current_frame, thread.thread_id,
              thread.native_thread_id) &&
         fits(frame.size, frame.previous, frame.executable, frame.instruction, frame.owner) &&
         fits(code.size, code.filename, code.name, code.line_table, code.first_line, code.local_names, code.local_kinds,
              code.instructions) &&
         fits(offsets.object.size, offsets.object.type) && fits(offsets.type.size, offsets.type.name) &&
         fits(offsets.tuple.size, offsets.tuple.items, offsets.tuple.count) &&
         fits(offsets.bytes.size, offsets.bytes.count, offsets.bytes.data) &&
         fits(offsets.unicode.size, offsets.unicode.state, offsets.unicode.length, offsets.unicode.ascii_size);
}

// Returns the number of the lowest bit of the field `kind` in struct _PyUnicodeObject_state (unicodeobject.h). `kind`
// is the width of a character. The bits "compact" and "ASCII" are above `kind`. _Py_DebugOffsets does not contain this
// number.
constexpr unsigned python_string_kind_shift(int minor, bool is_free_threaded) {
  return minor >= 14 && is_free_threaded ? 8 : 2;
}

// The lowest value of `owner` for a frame that the interpreter puts between C and Python. Such a frame is not a
// function of the program. FRAME_OWNED_BY_CSTACK is 3 up to 3.13. In 3.14 it is 4, and FRAME_OWNED_BY_INTERPRETER is 3.
inline constexpr std::uint8_t kFirstPythonShimOwner = 3;

// Since 3.14 the lowest bits of a reference in a frame say how the reference is counted.
inline constexpr std::uint64_t kPythonReferenceBits = 3;

// Returns the line of the instruction at `address`, or 0 if the instruction has no line or the line is not known.
// `address` is in bytes from the code's first instruction. `byte_at(i)` is byte i of the table, or -1 after its end.
// The table is co_linetable of 3.11 and later: Objects/locations.md.
//   Each entry of the table has a head, the only byte with bit 7 set, and further bytes. The head contains the form of
//   the entry, and the number of instructions minus one.
template <class ByteAt>
constexpr int find_python_location(ByteAt byte_at, int first_line, std::int64_t address) {
  constexpr int kUnit = 2;  // size of an instruction in bytes
  // Reads a signed number. Each byte contains six bits of the number, the lowest bits first. If bit 6 of a byte is set,
  // another byte follows. The lowest bit of the number is the sign.
  const auto read_signed = [&](std::size_t index) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 36; shift += 6, ++index) {
      const int byte = byte_at(index);
      if (byte < 0 || byte >= 0x80) break;
      value |= (static_cast<std::uint64_t>(byte) & 0x3FU) << shift;
      if ((byte & 0x40) == 0) break;
    }
    const auto size = static_cast<std::int64_t>(value >> 1U);
    return (value & 1U) != 0 ? -size : size;
  };
  std::int64_t line = first_line;
  std::int64_t end = 0;
  for (std::size_t i = 0; byte_at(i) >= 0;) {
    const int head = byte_at(i);
    const int form = (head >> 3) & 0xF;
    end += (std::int64_t{head & 7} + 1) * kUnit;
    if (form >= 10 && form <= 12) line += form - 10;
    if (form == 13 || form == 14) line += read_signed(i + 1);
    if (address < end) return form == 15 || line < 1 || line > INT32_MAX ? 0 : static_cast<int>(line);
    do ++i;
    while (byte_at(i) >= 0 && byte_at(i) < 0x80);
  }
  return 0;
}

}  // namespace forksight::abi
