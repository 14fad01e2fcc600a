#include "made_python.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace forksight::test {

std::size_t SparseMemory::read(std::uint64_t address, std::span<std::byte> bytes) const {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto page = pages_.find((address + i) / kPage);
    if (page == pages_.end()) return i;
    bytes[i] = page->second[(address + i) % kPage];
  }
  return bytes.size();
}

void SparseMemory::write(std::uint64_t address, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto& page = pages_[(address + i) / kPage];
    page.resize(kPage);
    page[(address + i) % kPage] = bytes[i];
  }
}

std::size_t RecordingMemory::read(std::uint64_t address, std::span<std::byte> bytes) const {
  const std::size_t size = source_->read(address, bytes);
  copy.write(address, bytes.first(size));
  if (size != 0) reads.push_back({address, size});
  return size;
}

std::vector<MadeVersion> made_versions() {
  std::vector<MadeVersion> versions;
  for (int minor = inspect::kFirstPythonMinor; minor <= inspect::kLastPythonMinor; ++minor)
    versions.push_back({minor, false});
  versions.push_back({14, true});
  versions.push_back({15, true});
  return versions;
}

std::string name_of(const MadeVersion& version) {
  return "3_" + std::to_string(version.minor) + (version.is_free_threaded ? "t" : "");
}

// The offsets of 3.13.0, 3.14.10 and 3.15.2 for x86-64. The offsets of builds without the GIL were computed by a
// compiler from the headers.
std::vector<std::uint64_t> MadePython::offsets_of(const MadeVersion& version) {
  if (version.minor == 13) {
    return {0x30d00f0, 0,    0x452b8, 0x260, 0x278,  0x2f998, 0x1c68, 0x1c60, 0x1cb0, 0x1ce8, 0x1de8, 0x1dd8,
            0x1de0,    0x10, 0x1e48,  0,     0x1e58, 0x1e50,  0x130,  0,      0x8,    0x10,   0x48,   0x98,
            0xa0,      0xe8, 0x20,    0x50,  0x8,    0,       0x38,   0x48,   0x46,   0xd0,   0x70,   0x78,
            0x80,      0x88, 0x44,    0x34,  0x60,   0x68,    0xc8,   0x10,   0x8,    0x1a0,  0x18,   0x58,
            0xa8,      0x20, 0x18,    0x10,  0x28,   0x18,    0x10,   0x30,   0x20,   0x28,   0x18,   0x10,
            0x20,      0x10, 0x18,    0x28,  0x10,   0x20,    0x40,   0x20,   0x10,   0x28};
  }
  if (version.minor == 14 && !version.is_free_threaded) {
    return {0x30e0af0, 0,      0x4d4c8, 0x310,  0x328, 0x37248, 0x1c70, 0x1c68, 0x1cb0, 0x1cc0, 0x1cf0, 0x1e08,
            0x1df8,    0x1e00, 0x10,    0x1e68, 0,     0x1e78,  0x1e70, 0x1f38, 0,      0x340,  0,      0x8,
            0x10,      0x48,   0x98,    0xa0,   0xe8,  0x20,    0x58,   0x8,    0,      0x38,   0x50,   0x4a,
            0x40,      0,      0xd8,    0x70,   0x78,  0x80,    0x88,   0x44,   0x34,   0x60,   0x68,   0xd0,
            0,         0x10,   0x8,     0x1a0,  0x18,  0x58,    0xa8,   0x28,   0x20,   0x10,   0x28,   0x18,
            0x10,      0xc8,   0x18,    0x28,   0x20,  0x30,    0x20,   0x28,   0x18,   0x10,   0x20,   0x10,
            0x18,      0x28,   0x10,    0x20,   0x40,  0x20,    0x10,   0x28,   0x108,  0xc0,   0xa0,   0x18,
            0x48,      0x43,   0,       0x8,    0x18,  0x130,   0x1f8c, 0,      0x4,    0x200};
  }
  if (version.minor == 14) {
    return {0x30e0af0, 0x1,    0x59438, 0x310,  0x328, 0x3d078, 0x1c70, 0x1c68, 0x1cb0, 0x1cc0, 0x1cf0, 0x1e20,
            0x1e10,    0x1e18, 0x10,    0x1e80, 0,     0x1e98,  0x1e90, 0x1f58, 0x4394, 0x340,  0,      0x8,
            0x10,      0x48,   0x98,    0xa0,   0xe8,  0x20,    0x58,   0x8,    0,      0x38,   0x50,   0x4e,
            0x40,      0x48,   0xf0,    0x80,   0x88,  0x90,    0x98,   0x54,   0x44,   0x70,   0x78,   0xe8,
            0xe0,      0x20,   0x18,    0x1b0,  0x28,  0x68,    0xb8,   0x38,   0x30,   0x20,   0x38,   0x28,
            0x20,      0xd8,   0x28,    0x38,   0x30,  0x40,    0x30,   0x38,   0x28,   0x20,   0x30,   0x20,
            0x28,      0x38,   0x20,    0x30,   0x50,  0x30,    0x20,   0x38,   0x120,  0xc0,   0xb0,   0x28,
            0x58,      0x53,   0,       0x8,    0x18,  0x130,   0x1fac, 0,      0x4,    0x200};
  }
  if (!version.is_free_threaded) {
    return {0x30f02f0, 0,     0x549c0, 0x390, 0x3a8,  0x373b8, 0x1c68, 0x1c60, 0x1ca8, 0x1cb8, 0x1ce8, 0x1da8, 0x1d98,
            0x1da0,    0x10,  0x1e38,  0,     0x1e48, 0x1e40,  0x1f08, 0,      0x378,  0,      0x8,    0x10,   0x48,
            0x50,      0x58,  0x60,    0xb0,  0xb8,   0x100,   0x20,   0x24,   0x28,   0x88,   0x120,  0,      0x58,
            0x8,       0,     0x38,    0x50,  0x4a,   0x40,    0,      0xd8,   0x70,   0x78,   0x80,   0x88,   0x44,
            0x34,      0x60,  0x68,    0xd0,  0,      0x10,    0x8,    0x1a8,  0x18,   0x58,   0xa8,   0x20,   0x120,
            0x3b0,     0x378, 0x28,    0x20,  0x10,   0x28,    0x18,   0x10,   0xc8,   0x18,   0x28,   0x20,   0x30,
            0x20,      0x28,  0x18,    0x10,  0x20,   0x10,    0x18,   0x28,   0x10,   0x20,   0x40,   0x20,   0x10,
            0x28,      0x38,  0xb0,    0x70,  0x78,   0x460,   0x68,   0xa0,   0x18,   0x48,   0x43,   0,      0x8,
            0x18,      0x158, 0x1f5c,  0,     0x4,    0x200};
  }
  return {0x30f02f0, 0x1,   0x63ed0, 0x390, 0x3a8,  0x3d1d8, 0x1c68, 0x1c60, 0x1ca8, 0x1cb8, 0x1ce8, 0x1da8, 0x1d98,
          0x1da0,    0x10,  0x1e38,  0,     0x1e50, 0x1e48,  0x1f10, 0x4364, 0x378,  0,      0x8,    0x10,   0x48,
          0x50,      0x58,  0x60,    0xb0,  0xb8,   0x100,   0x20,   0x24,   0x28,   0x88,   0x120,  0,      0x58,
          0x8,       0,     0x38,    0x50,  0x4e,   0x40,    0x48,   0xf0,   0x80,   0x88,   0x90,   0x98,   0x54,
          0x44,      0x70,  0x78,    0xe8,  0xe0,   0x20,    0x18,   0x1b8,  0x28,   0x68,   0xb8,   0x30,   0x130,
          0x3c8,     0x388, 0x38,    0x30,  0x20,   0x38,    0x28,   0x20,   0xd8,   0x28,   0x38,   0x30,   0x40,
          0x30,      0x38,  0x28,    0x20,  0x30,   0x20,    0x28,   0x38,   0x20,   0x30,   0x50,   0x30,   0x20,
          0x38,      0x48,  0xb0,    0x70,  0x78,   0xe0,    0x68,   0xb0,   0x28,   0x58,   0x53,   0,      0x8,
          0x18,      0x158, 0x1f64,  0,     0x4,    0x200};
}

inspect::PythonLayout MadePython::layout_of(const MadeVersion& version) {
  if (version.minor < inspect::kFirstDescribedMinor) return *inspect::known_python_layout(version.minor);
  SparseMemory memory;
  memory.put(kRuntime, std::array<char, 8>{'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'});
  const auto offsets = offsets_of(version);
  memory.write(kRuntime + 8, std::as_bytes(std::span(offsets)));
  const auto layout = inspect::read_python_layout(memory, kRuntime);
  if (!layout) throw std::runtime_error("the offsets of " + name_of(version) + " are not understood");
  return *layout;
}

MadePython::MadePython(const inspect::PythonLayout& layout) : layout_(layout) {
  memory_->write(kRuntime, std::vector<std::byte>(2048));
  interpreter_ = allocate(0x2000);
  memory_->put(kRuntime + layout_.interpreters, interpreter_);
  if (layout_.interpreter_gil != 0) memory_->put(interpreter_ + layout_.interpreter_gil, allocate(64));
  code_type_ = allocate(256);
  const std::uint64_t name = allocate(16);
  memory_->put(name, std::array<char, 5>{'c', 'o', 'd', 'e', '\0'});
  memory_->put(code_type_ + layout_.type_name, name);
}

std::uint64_t MadePython::allocate(std::size_t size) {
  const std::uint64_t address = next_;
  memory_->write(address, std::vector<std::byte>(size));
  next_ += (size + 63) / 64 * 64 + 512;
  return address;
}

std::uint64_t MadePython::object(std::size_t size, std::uint64_t type) {
  const std::uint64_t address = allocate(size);
  memory_->put(address + layout_.object_type, type);
  return address;
}

std::uint64_t MadePython::string(const std::u32string& text) {
  const std::uint32_t highest = text.empty() ? 0 : *std::ranges::max_element(text);
  const bool is_ascii = highest < 0x80;
  const std::uint32_t width = highest < 0x100 ? 1 : highest < 0x10000 ? 2 : 4;
  const std::uint64_t address = allocate(layout_.string_other + text.size() * width);
  memory_->put(address + layout_.string_length, static_cast<std::uint64_t>(text.size()));
  memory_->put(address + layout_.string_state, 1U | (width | 1U << 3U | (is_ascii ? 1U << 4U : 0U))
                                                        << layout_.string_kind_shift);
  std::uint64_t at = address + (is_ascii ? layout_.string_ascii : layout_.string_other);
  for (const char32_t character : text) {
    memory_->write(at, std::as_bytes(std::span(&character, 1)).first(width));
    at += width;
  }
  return address;
}

std::uint64_t MadePython::bytes(const std::vector<std::uint8_t>& data) {
  const std::uint64_t address = allocate(layout_.bytes_data + data.size());
  memory_->put(address + layout_.bytes_size, static_cast<std::uint64_t>(data.size()));
  memory_->write(address + layout_.bytes_data, std::as_bytes(std::span(data)));
  return address;
}

std::uint64_t MadePython::code(const std::u32string& name, const std::u32string& file, int first_line,
                               const std::vector<std::uint8_t>& lines, const std::vector<std::u32string>& locals) {
  constexpr std::uint8_t kLocal = 0x20;
  const std::uint64_t address = object(512, code_type_);
  memory_->put(address + layout_.code_name, string(name));
  memory_->put(address + layout_.code_file, string(file));
  memory_->put(address + layout_.code_first_line, std::int32_t{first_line});
  memory_->put(address + layout_.code_lines, bytes(lines));
  const std::uint64_t tuple = allocate(layout_.tuple_items + locals.size() * 8);
  memory_->put(tuple + layout_.tuple_size, static_cast<std::uint64_t>(locals.size()));
  for (std::size_t i = 0; i < locals.size(); ++i) memory_->put(tuple + layout_.tuple_items + i * 8, string(locals[i]));
  memory_->put(address + layout_.code_local_names, tuple);
  if (layout_.code_copies != 0) {
    const std::uint64_t copies = allocate(24);
    memory_->put(copies, std::array<std::uint64_t, 3>{2, address + layout_.code_instructions, allocate(512)});
    memory_->put(address + layout_.code_copies, copies);
  }
  if (layout_.code_local_kinds != 0)
    memory_->put(address + layout_.code_local_kinds, bytes(std::vector<std::uint8_t>(locals.size(), kLocal)));
  return address;
}

std::vector<std::uint64_t> MadePython::frames(const std::vector<MadeFrame>& frames) {
  std::vector<std::uint64_t> addresses;
  for (const MadeFrame& frame : frames) {
    const std::uint64_t address = allocate(128);
    if (!addresses.empty()) memory_->put(addresses.back() + layout_.frame_back, address);
    addresses.push_back(address);
    const std::uint64_t tag = layout_.minor >= 14 && frame.code != 0 ? 1 : 0;
    memory_->put(address + layout_.frame_code, frame.code | tag);
    if (layout_.frame_owner != 0) memory_->put(address + layout_.frame_owner, frame.owner);
    if (layout_.code_instructions != 0) {
      std::uint64_t first = frame.code + layout_.code_instructions;
      if (frame.copy != 0) {
        memory_->put(address + layout_.frame_copy_index, frame.copy);
        first = *memory_->value<std::uint64_t>(*memory_->value<std::uint64_t>(frame.code + layout_.code_copies) +
                                               (frame.copy + 1) * 8);
      }
      memory_->put(address + layout_.frame_instruction,
                   first + static_cast<std::uint64_t>(std::int64_t{frame.address}));
    } else {
      const bool in_bytes = layout_.lines == inspect::PythonLines::kDeltas || frame.address < 0;
      memory_->put(address + layout_.frame_instruction, std::int32_t{in_bytes ? frame.address : frame.address / 2});
    }
  }
  return addresses;
}

std::uint64_t MadePython::thread(std::uint64_t pointer, std::int32_t tid, std::uint64_t frame) {
  const std::uint64_t address = allocate(512);
  memory_->put(address + layout_.thread_interpreter, interpreter_);
  memory_->put(address + layout_.thread_next, last_thread_);
  memory_->put(address + layout_.thread_id, pointer);
  if (layout_.native_id != 0) memory_->put(address + layout_.native_id, std::int64_t{tid});
  if (layout_.has_cframe != 0) {
    const std::uint64_t cframe = allocate(32);
    memory_->put(cframe + layout_.cframe_frame, frame);
    memory_->put(address + layout_.thread_frame, cframe);
  } else {
    memory_->put(address + layout_.thread_frame, frame);
  }
  memory_->put(interpreter_ + layout_.threads, address);
  last_thread_ = address;
  return address;
}

void MadePython::give_gil(std::uint64_t thread) {
  const std::uint64_t gil = layout_.runtime_gil != 0
                                ? kRuntime + layout_.runtime_gil
                                : *memory_->value<std::uint64_t>(interpreter_ + layout_.interpreter_gil);
  memory_->put(gil + layout_.gil_holder, thread);
  memory_->put(gil + layout_.gil_locked, std::int32_t{1});
}

image::Image MadePython::image() const {
  image::Image image;
  image.libc = {{2, 36}, abi::ConditionKind::kWithReferences};
  image.pid = 100;
  image.memory = memory_;
  return image;
}

}  // namespace forksight::test
