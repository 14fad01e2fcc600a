#include "python/own_frames.hpp"

#include <string.h>

#include "forksight/abi/python.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::uint32_t kMostInterpreters = 16;
constexpr std::uint32_t kMostThreads = 128;  // the interpreter's dumper writes only 100
constexpr std::uint32_t kMostFrames = 100;   // for each thread, as in the dumper
constexpr std::uint32_t kMostSteps = 1000;   // for each thread: frames that are visited
constexpr std::uint64_t kMostCharacters = 500;
constexpr std::size_t kMostFrameBytes = 128;
constexpr std::size_t kMostCodeBytes = 512;

const void* pointer(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

template <class T>
bool read(std::uint64_t address, T& to) {
  return address != 0 && read_memory(pointer(address), &to, sizeof to) == sizeof to;
}

template <class T>
T load(const unsigned char* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

std::uint32_t narrow(std::uint64_t offset) { return static_cast<std::uint32_t>(offset); }

// The table of offsets is read into a mapping, because it is too large for the stack of the calling thread.
template <class Offsets>
bool read_layout(std::uint64_t runtime, OwnPythonLayout& layout) {
  void* const page = sys::map(sizeof(Offsets), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (page == nullptr) return false;
  const auto& offsets = *static_cast<const Offsets*>(page);
  const bool is_read = read_memory(pointer(runtime), page, sizeof(Offsets)) == sizeof(Offsets);
  const bool is_good = is_read && abi::is_consistent(offsets) && offsets.frame.size <= kMostFrameBytes &&
                       offsets.code.size <= kMostCodeBytes && offsets.unicode.size <= kMostFrameBytes;
  if (is_good) {
    layout.runtime = runtime;
    layout.interpreters = narrow(offsets.runtime.interpreters_head);
    layout.interpreter_next = narrow(offsets.interpreter.next);
    layout.threads = narrow(offsets.interpreter.threads_head);
    layout.thread_next = narrow(offsets.thread.next);
    layout.thread_interpreter = narrow(offsets.thread.interpreter);
    layout.thread_id = narrow(offsets.thread.thread_id);
    layout.thread_frame = narrow(offsets.thread.current_frame);
    layout.frame_previous = narrow(offsets.frame.previous);
    layout.frame_code = narrow(offsets.frame.executable);
    layout.frame_instruction = narrow(offsets.frame.instruction);
    layout.frame_owner = narrow(offsets.frame.owner);
    layout.code_file = narrow(offsets.code.filename);
    layout.code_name = narrow(offsets.code.name);
    layout.code_first_line = narrow(offsets.code.first_line);
    layout.code_lines = narrow(offsets.code.line_table);
    layout.code_instructions = narrow(offsets.code.instructions);
    layout.object_type = narrow(offsets.object.type);
    layout.type_name = narrow(offsets.type.name);
    layout.bytes_size = narrow(offsets.bytes.count);
    layout.bytes_data = narrow(offsets.bytes.data);
    layout.string_length = narrow(offsets.unicode.length);
    layout.string_state = narrow(offsets.unicode.state);
    layout.string_ascii = narrow(offsets.unicode.ascii_size);
  }
  sys::unmap(page, sizeof(Offsets));
  return is_good;
}

}  // namespace

OwnPythonLayout read_own_python_layout(std::uint64_t runtime) {
  OwnPythonLayout layout{};
  abi::PythonHeadOffsets head;
  if (!read(runtime, head) || memcmp(head.cookie, abi::kPythonCookie, sizeof head.cookie) != 0) return layout;
  if (head.free_threaded != 0) return layout;
  // PY_VERSION_HEX
  const std::uint64_t version = head.version >> 16U;
  if (version == 0x030D) {
    read_layout<abi::PythonOffsets13>(runtime, layout);
  } else if (version == 0x030E) {
    read_layout<abi::PythonOffsets14>(runtime, layout);
  } else if (version == 0x030F) {
    read_layout<abi::PythonOffsets15>(runtime, layout);
  }
  return layout;
}

// Says where the text contains the line for a frame. If the same frame occurs again, the line is copied from there.
// Frames often occur again, because several threads may be at the same place, and functions may be recursive.
struct WrittenFrame {
  std::uint64_t code;
  std::uint64_t instruction;
  std::uint32_t at;
  std::uint32_t bytes;
};
constexpr std::size_t kWrittenFrames = 64;

struct OwnFrames::Scratch {
  WrittenFrame written[kWrittenFrames];
  unsigned char frame[kMostFrameBytes];
  unsigned char code[kMostCodeBytes];
  unsigned char string[2048];   // the header of a string object, and its characters
  unsigned char table[1024];    // a piece of a table of lines
  std::uint64_t table_address;  // where the piece begins
  std::uint32_t table_bytes;
};

OwnFrames::OwnFrames(const OwnPythonLayout& layout, char* text, std::uint32_t most, void* scratch)
    : layout_(layout), text_(text), most_(most), scratch_(*static_cast<Scratch*>(scratch)) {
  static_assert(sizeof(Scratch) <= kScratchBytes);
}

std::uint64_t OwnFrames::word(std::uint64_t address) const {
  std::uint64_t value = 0;
  return read(address, value) ? value : 0;
}

void OwnFrames::add(char character) {
  if (bytes_ < most_) {
    text_[bytes_++] = character;
  } else {
    is_cut_ = true;
  }
}

void OwnFrames::add(const char* text) {
  for (; *text != '\0'; ++text) add(*text);
}

void OwnFrames::add_number(std::uint64_t number, unsigned base, unsigned digits) {
  char reversed[20];
  unsigned count = 0;
  for (; count < digits || number != 0; number /= base) {
    const auto digit = static_cast<unsigned>(number % base);
    reversed[count++] = static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10);
  }
  while (count > 0) add(reversed[--count]);
}

// Adds the character in UTF-8. Each line of the text is one frame, so a line break in a name is replaced by "?".
void OwnFrames::add_character(std::uint32_t character) {
  const bool is_none = character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF);
  if (is_none) character = 0xFFFD;
  const auto put = [this](std::uint32_t byte) { add(static_cast<char>(byte)); };
  if (character < 0x80) {
    put(character < 0x20 ? '?' : character);
    return;
  }
  if (character < 0x800) {
    put(0xC0U | character >> 6U);
  } else {
    if (character < 0x10000) {
      put(0xE0U | character >> 12U);
    } else {
      put(0xF0U | character >> 18U);
      put(0x80U | (character >> 12U & 0x3FU));
    }
    put(0x80U | (character >> 6U & 0x3FU));
  }
  put(0x80U | (character & 0x3FU));
}

void OwnFrames::add_string(std::uint64_t address, std::uint64_t most) {
  const std::size_t head = layout_.string_ascii + abi::kPythonUtf8Fields;
  unsigned char* const bytes = scratch_.string;
  const std::size_t got = address == 0 ? 0 : read_memory(pointer(address), bytes, sizeof scratch_.string);
  if (got < layout_.string_ascii) return add("???");
  const auto length = load<std::uint64_t>(bytes + layout_.string_length);
  // In builds with the GIL, the width of a character is in bits 2 to 4, "compact" is bit 5 and "ASCII" bit 6.
  const std::uint32_t kind =
      load<std::uint32_t>(bytes + layout_.string_state) >> abi::python_string_kind_shift(0, false);
  const std::uint32_t width = kind & 7U;
  const bool is_compact = (kind >> 3U & 1U) != 0;
  const bool is_ascii = (kind >> 4U & 1U) != 0;
  if (!is_compact || (width != 1 && width != 2 && width != 4) || length > (std::uint64_t{1} << 40U)) return add("???");
  std::size_t at = is_ascii ? layout_.string_ascii : head;
  for (std::uint64_t i = 0; i < length && i < most && at + width <= got; ++i, at += width) {
    std::uint32_t character = 0;
    memcpy(&character, bytes + at, width);
    add_character(character);
  }
  if (length > most) add("...");
}

bool OwnFrames::is_code(std::uint64_t type) {
  if (type == 0) return false;
  if (type == code_type_) return true;
  char name[5] = {};
  if (!read(word(type + layout_.type_name), name) || memcmp(name, "code", sizeof name) != 0) return false;
  code_type_ = type;
  return true;
}

// A byte of the table of lines. The table may be long, so it is read in pieces.
int OwnFrames::byte_of_table(std::uint64_t table, std::uint64_t size, std::size_t index) {
  if (index >= size) return -1;
  const std::uint64_t address = table + layout_.bytes_data + index;
  if (address - scratch_.table_address >= scratch_.table_bytes) {
    const std::uint64_t left = size - index;
    const std::size_t wanted = left < sizeof scratch_.table ? left : sizeof scratch_.table;
    scratch_.table_address = address;
    scratch_.table_bytes = static_cast<std::uint32_t>(read_memory(pointer(address), scratch_.table, wanted));
    if (scratch_.table_bytes == 0) return -1;
  }
  return scratch_.table[address - scratch_.table_address];
}

int OwnFrames::find_line(std::uint64_t table, int first_line, std::uint64_t address) {
  constexpr std::uint64_t kMostTable = std::uint64_t{4} << 20U;
  const auto distance = static_cast<std::int64_t>(address);
  if (distance < 0) return first_line;  // before the first instruction of the code
  const std::uint64_t size = word(table + layout_.bytes_size);
  if (table == 0 || size > kMostTable) return 0;
  scratch_.table_bytes = 0;
  return abi::find_python_location([&](std::size_t index) { return byte_of_table(table, size, index); }, first_line,
                                   distance);
}

bool OwnFrames::add_known_frame(std::uint64_t code, std::uint64_t instruction) {
  const WrittenFrame& written = scratch_.written[instruction / 2 % kWrittenFrames];
  if (written.code != code || written.instruction != instruction) return false;
  for (std::uint32_t i = 0; i < written.bytes; ++i) add(text_[written.at + i]);
  return true;
}

bool OwnFrames::add_frame(std::uint64_t code, std::uint64_t instruction) {
  if (code != 0 && add_known_frame(code, instruction)) return true;
  const std::uint32_t at = bytes_;
  unsigned char* const bytes = scratch_.code;
  const std::size_t wanted = layout_.code_instructions;
  if (code == 0 || read_memory(pointer(code), bytes, wanted) != wanted) return false;
  if (!is_code(load<std::uint64_t>(bytes + layout_.object_type))) return false;
  add("  File \"");
  add_string(load<std::uint64_t>(bytes + layout_.code_file), kMostCharacters);
  add("\", line ");
  const int line =
      find_line(load<std::uint64_t>(bytes + layout_.code_lines), load<std::int32_t>(bytes + layout_.code_first_line),
                instruction - (code + layout_.code_instructions));
  if (line > 0) {
    add_number(static_cast<std::uint64_t>(line), 10, 1);
  } else {
    add("???");
  }
  add(" in ");
  add_string(load<std::uint64_t>(bytes + layout_.code_name), kMostCharacters);
  add('\n');
  if (!is_cut_) scratch_.written[instruction / 2 % kWrittenFrames] = {code, instruction, at, bytes_ - at};
  return true;
}

void OwnFrames::add_frames(std::uint64_t state) {
  std::uint64_t frame = word(state + layout_.thread_frame);
  std::uint32_t shown = 0;
  for (std::uint32_t step = 0; frame != 0 && !is_cut_; ++step) {
    const std::size_t wanted = layout_.frame_owner + 1U;
    const bool is_read = read_memory(pointer(frame), scratch_.frame, wanted) == wanted;
    if (!is_read || shown == kMostFrames || step == kMostSteps) return add("  ...\n");
    const auto previous = load<std::uint64_t>(scratch_.frame + layout_.frame_previous);
    if (scratch_.frame[layout_.frame_owner] < abi::kFirstPythonShimOwner) {
      const auto code = load<std::uint64_t>(scratch_.frame + layout_.frame_code) & ~abi::kPythonReferenceBits;
      if (!add_frame(code, load<std::uint64_t>(scratch_.frame + layout_.frame_instruction))) return add("  ...\n");
      ++shown;
    }
    frame = previous;
  }
}

void OwnFrames::add_one(std::uint64_t state) {
  add("Stack (most recent call first):\n");
  add_frames(state);
}

void OwnFrames::add_others(std::uint64_t state) {
  std::uint32_t threads = 0;
  std::uint64_t interpreter = word(layout_.runtime + layout_.interpreters);
  for (std::uint32_t i = 0; i < kMostInterpreters && interpreter != 0; ++i) {
    std::uint64_t other = word(interpreter + layout_.threads);
    while (other != 0 && threads < kMostThreads && !is_cut_) {
      if (word(other + layout_.thread_interpreter) != interpreter) return;
      ++threads;
      const std::uint64_t id = word(other + layout_.thread_id);
      if (other != state && id != 0) {
        add("\nThread 0x");
        add_number(id, 16, 16);
        add(" (most recent call first):\n");
        add_frames(other);
      }
      other = word(other + layout_.thread_next);
    }
    interpreter = word(interpreter + layout_.interpreter_next);
  }
}

}  // namespace forksight
