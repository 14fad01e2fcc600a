#include "files/elf_tables.hpp"

#include <fmt/core.h>
#include <lzma.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "files/budgets.hpp"
#include "files/open_file.hpp"

namespace forksight::files {
namespace {

constexpr std::size_t kMaxSegments = 65'535;
constexpr std::size_t kMaxName = 63;

template <class T>
bool read_value(int fd, std::uint64_t offset, T& value) {
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  return read_at(fd, offset, bytes) == bytes.size();
}

std::uint64_t capped_sum(std::uint64_t one, std::uint64_t other) {
  return other > UINT64_MAX - one ? UINT64_MAX : one + other;
}

// Returns the unpacked size that the section's own header claims. libelf trusts this size. 0: the section is not
// compressed.
std::uint64_t read_unpacked_size(int fd, const ElfSection& section, std::uint64_t flags) {
  if ((flags & SHF_COMPRESSED) != 0) {
    Elf64_Chdr head{};
    return read_value(fd, section.offset, head) ? head.ch_size : 0;
  }
  if (!section.name.starts_with(".zdebug")) return 0;
  // The section begins with "ZLIB", followed by the size with the most significant byte first.
  std::array<unsigned char, 12> head{};
  if (!read_value(fd, section.offset, head) || std::memcmp(head.data(), "ZLIB", 4) != 0) return 0;
  std::uint64_t size = 0;
  for (std::size_t i = 4; i < head.size(); ++i) size = size << 8U | head[i];
  return size;
}

// Reads the section headers. Returns what is wrong, or "".
std::string read_sections(int fd, ElfTables& tables) {
  const Elf64_Ehdr& header = tables.header;
  if (header.e_shoff == 0) return "";
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return "its section headers have a wrong size";
  Elf64_Shdr first{};
  if (!read_value(fd, header.e_shoff, first)) return "";  // the table is missing; libelf sees no sections either
  const std::uint64_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
  if (count > kMaxSections) return fmt::format("it has {} sections", count);
  std::vector<Elf64_Shdr> headers(count);
  const auto room = std::as_writable_bytes(std::span(headers));
  if (read_at(fd, header.e_shoff, room) != room.size()) return "";

  const std::uint64_t names_at = header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx;
  std::vector<char> names;
  if (names_at < count && headers[names_at].sh_type != SHT_NOBITS) {
    if (headers[names_at].sh_size > kMaxSectionNameBytes) return "the names of its sections are too large";
    names.resize(headers[names_at].sh_size);
    names.resize(read_at(fd, headers[names_at].sh_offset, std::as_writable_bytes(std::span(names))));
    // For each name, libelf searches the table backwards for a final NUL. In a table without a NUL this takes too long.
    if (!names.empty() && names.back() != '\0') return "the names of its sections do not end";
  }
  std::uint64_t notes = 0;
  tables.sections.reserve(count);
  for (const Elf64_Shdr& entry : headers) {
    ElfSection section;
    if (entry.sh_name < names.size()) {
      const char* const name = names.data() + entry.sh_name;
      section.name.assign(name, strnlen(name, std::min(kMaxName, names.size() - entry.sh_name)));
    }
    section.type = entry.sh_type;
    section.offset = entry.sh_offset;
    section.size = entry.sh_type == SHT_NOBITS ? 0 : entry.sh_size;
    if (section.size > 0) section.unpacked_size = read_unpacked_size(fd, section, entry.sh_flags);
    if (entry.sh_type == SHT_NOTE) notes = capped_sum(notes, entry.sh_size);
    if (entry.sh_type == SHT_STRTAB && entry.sh_size > 0) {
      char last = '\0';
      if (read_value(fd, entry.sh_offset + entry.sh_size - 1, last) && last != '\0') {
        return "the names of its symbols do not end";
      }
    }
    tables.sections.push_back(std::move(section));
  }
  if (notes > kMaxNoteBytes) return fmt::format("its sections of notes have {} bytes", notes);
  return "";
}

std::string read_segments(int fd, ElfTables& tables) {
  const Elf64_Ehdr& header = tables.header;
  if (header.e_phnum == 0 || header.e_phoff == 0) return "";
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return "its segment headers have a wrong size";
  std::uint64_t count = header.e_phnum;
  if (count == PN_XNUM) {
    Elf64_Shdr first{};
    if (!read_value(fd, header.e_shoff, first)) return "the table of its segments is missing";
    count = first.sh_info;
  }
  if (count > kMaxSegments) return fmt::format("it has {} segments", count);
  tables.segments.resize(count);
  const auto room = std::as_writable_bytes(std::span(tables.segments));
  if (read_at(fd, header.e_phoff, room) != room.size()) return "the table of its segments is cut";
  std::uint64_t notes = 0;
  for (const Elf64_Phdr& segment : tables.segments) {
    if (segment.p_type == PT_NOTE) notes = capped_sum(notes, segment.p_filesz);
  }
  if (notes > kMaxNoteBytes) return fmt::format("its segments of notes have {} bytes", notes);
  return "";
}

}  // namespace

const ElfSection* ElfTables::find(std::string_view name) const {
  const auto at = std::ranges::find(sections, name, &ElfSection::name);
  return at == sections.end() ? nullptr : &*at;
}

std::uint64_t ElfTables::unpacked_bytes() const {
  std::uint64_t sum = 0;
  for (const ElfSection& section : sections) sum = capped_sum(sum, section.unpacked_size);
  return sum;
}

std::uint64_t ElfTables::frame_bytes() const {
  std::uint64_t by_sections = 0;
  for (const ElfSection& section : sections) {
    const bool is_frames = section.name == ".eh_frame" || section.name == ".eh_frame_hdr" ||
                           section.name == ".debug_frame" || section.name == ".zdebug_frame";
    if (is_frames) by_sections = capped_sum(by_sections, std::max(section.size, section.unpacked_size));
  }
  std::uint64_t by_segments = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_GNU_EH_FRAME) by_segments = capped_sum(by_segments, segment.p_filesz);
  }
  return std::max(by_sections, by_segments);
}

Result<ElfTables> read_tables(int fd) {
  ElfTables tables;
  const Elf64_Ehdr& header = tables.header;
  if (!read_value(fd, 0, tables.header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return Error{"it is not an ELF file"};
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Error{"it is not a 64-bit ELF file of this byte order"};
  }
  if (std::string fault = read_segments(fd, tables); !fault.empty()) return Error{std::move(fault)};
  if (std::string fault = read_sections(fd, tables); !fault.empty()) return Error{std::move(fault)};
  return tables;
}

std::vector<std::uint8_t> find_build_id(std::span<const std::byte> notes, std::uint64_t alignment) {
  const std::uint64_t unit = alignment == 8 ? 8 : 4;
  const auto padded = [&](std::uint64_t size) { return (size + unit - 1) & ~(unit - 1); };
  constexpr std::string_view kOwner{"GNU", 4};
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr head;
    std::memcpy(&head, notes.data(), sizeof head);
    const std::uint64_t body_at = padded(sizeof head + head.n_namesz);
    if (body_at > notes.size() || head.n_descsz > notes.size() - body_at) return {};
    const bool is_it = head.n_type == NT_GNU_BUILD_ID && head.n_namesz == kOwner.size() &&
                       std::memcmp(notes.data() + sizeof head, kOwner.data(), kOwner.size()) == 0;
    if (is_it) {
      const auto* const id = reinterpret_cast<const std::uint8_t*>(notes.data() + body_at);
      return {id, id + head.n_descsz};
    }
    const std::uint64_t next = padded(body_at + head.n_descsz);
    if (next >= notes.size()) return {};
    notes = notes.subspan(next);
  }
  return {};
}

std::vector<std::uint8_t> read_build_id(int fd, const ElfTables& tables) {
  // read_tables() has checked that all notes together are within the budget.
  const auto read = [&](std::uint64_t offset, std::uint64_t size, std::uint64_t alignment) {
    std::vector<std::byte> notes(size);
    notes.resize(read_at(fd, offset, notes));
    return find_build_id(notes, alignment);
  };
  for (const ElfSection& section : tables.sections) {
    if (section.type != SHT_NOTE) continue;
    if (auto id = read(section.offset, section.size, 4); !id.empty()) return id;
  }
  for (const Elf64_Phdr& segment : tables.segments) {
    if (segment.p_type != PT_NOTE) continue;
    if (auto id = read(segment.p_offset, segment.p_filesz, segment.p_align); !id.empty()) return id;
  }
  return {};
}

std::optional<std::uint64_t> find_mini_debug_bytes(int fd, const ElfSection& section) {
  constexpr std::uint64_t kMostMemory = std::uint64_t{96} << 20U;
  constexpr std::size_t kPiece = 64U << 10U;
  if (section.size > kMaxMiniDebugBytes) return std::nullopt;
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMostMemory, 0) != LZMA_OK) return std::nullopt;
  std::vector<std::byte> packed(kPiece);
  std::vector<std::uint8_t> unpacked(kPiece);
  std::uint64_t at = section.offset;
  const std::uint64_t end = section.offset + section.size;
  lzma_ret state = LZMA_OK;
  std::uint64_t sum = 0;
  while (state == LZMA_OK && sum <= kMaxMiniDebugBytes) {
    if (stream.avail_in == 0) {
      const std::size_t got = read_at(fd, at, std::span(packed).first(std::min<std::uint64_t>(kPiece, end - at)));
      if (got == 0) break;
      at += got;
      stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
      stream.avail_in = got;
    }
    stream.next_out = unpacked.data();
    stream.avail_out = unpacked.size();
    state = lzma_code(&stream, LZMA_RUN);
    sum += unpacked.size() - stream.avail_out;
  }
  lzma_end(&stream);
  return state == LZMA_STREAM_END && sum <= kMaxMiniDebugBytes ? std::optional(sum) : std::nullopt;
}

}  // namespace forksight::files
