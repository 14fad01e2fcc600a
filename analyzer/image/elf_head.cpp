#include "image/elf_head.hpp"

#include <algorithm>
#include <cstring>

#include "files/elf_tables.hpp"
#include "files/open_file.hpp"

namespace forksight::image {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kMaxSegmentsOfModule = 256;
constexpr std::size_t kMaxBuildNoteBytes = 64U << 10U;    // the most that is read from one segment
constexpr std::size_t kMaxBuildNotesBytes = 256U << 10U;  // the most that is read from all segments together

using ReadAt = std::function<std::size_t(std::uint64_t offset, std::span<std::byte>)>;

std::uint64_t page_down(std::uint64_t address) { return address & ~(kPageBytes - 1); }

bool is_x86_64(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == EM_X86_64 &&
         (header.e_type == ET_EXEC || header.e_type == ET_DYN) && header.e_phentsize == sizeof(Elf64_Phdr);
}

// `read` takes offsets in the file. If `is_mapped`, `read` takes distances from the mapped header instead, because in
// memory a segment lies at its address, and not at its offset in the file.
std::optional<ElfHead> read_head(const ReadAt& read, bool is_mapped) {
  ElfHead head;
  const auto header = std::as_writable_bytes(std::span(&head.header, 1));
  if (read(0, header) != header.size() || !is_x86_64(head.header)) return std::nullopt;
  if (head.header.e_phnum == 0 || head.header.e_phnum > kMaxSegmentsOfModule) return std::nullopt;
  head.segments.resize(head.header.e_phnum);
  const auto table = std::as_writable_bytes(std::span(head.segments));
  if (read(head.header.e_phoff, table) != table.size()) return std::nullopt;

  bool has_first = false;
  for (const Elf64_Phdr& segment : head.segments) {
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_vaddr + segment.p_memsz < segment.p_vaddr) return std::nullopt;
    if (!has_first && page_down(segment.p_offset) != 0) return std::nullopt;
    if (!has_first) head.first_address = page_down(segment.p_vaddr);
    has_first = true;
    if (segment.p_vaddr < head.first_address) return std::nullopt;
    head.end_address = std::max(head.end_address, page_down(segment.p_vaddr + segment.p_memsz + kPageBytes - 1));
  }
  if (!has_first || head.end_address <= head.first_address) return std::nullopt;

  std::size_t left = kMaxBuildNotesBytes;
  for (const Elf64_Phdr& segment : head.segments) {
    if (segment.p_type != PT_NOTE || !head.build_id.empty() || left == 0) continue;
    if (is_mapped && segment.p_vaddr < head.first_address) continue;
    std::vector<std::byte> notes(std::min<std::uint64_t>({segment.p_filesz, kMaxBuildNoteBytes, left}));
    left -= notes.size();
    notes.resize(read(is_mapped ? segment.p_vaddr - head.first_address : segment.p_offset, notes));
    head.build_id = files::find_build_id(notes, segment.p_align);
  }
  return head;
}

}  // namespace

bool ElfHead::is_same_file(const ElfHead& other) const {
  if (!build_id.empty() || !other.build_id.empty()) return build_id == other.build_id;
  return std::memcmp(&header, &other.header, sizeof header) == 0 && segments.size() == other.segments.size() &&
         std::memcmp(segments.data(), other.segments.data(), segments.size() * sizeof(Elf64_Phdr)) == 0;
}

std::optional<ElfHead> read_mapped_head(const Memory& memory, std::uint64_t start) {
  return read_head(
      [&](std::uint64_t offset, std::span<std::byte> bytes) {
        return start + offset < start ? 0 : memory.read(start + offset, bytes);
      },
      true);
}

std::optional<ElfHead> read_file_head(const files::Owner& owner, const std::string& path,
                                      const std::optional<files::MappedFile>& mapped) {
  const files::Descriptor file = files::open_mapped(owner, path, mapped);
  if (!file) return std::nullopt;
  return read_head(
      [&](std::uint64_t offset, std::span<std::byte> bytes) { return files::read_at(file.get(), offset, bytes); },
      false);
}

std::vector<std::byte> copy_mapped_file(const Memory& memory, std::uint64_t start, const ElfHead& head,
                                        std::size_t limit, std::size_t& spent) {
  std::vector<std::byte> file;
  const std::uint64_t bias = start - head.first_address;
  // `limit` applies to the size of the file, and also to the sum of all bytes that are read, because segments may
  // overlap in the file.
  std::size_t left = limit;
  for (const Elf64_Phdr& segment : head.segments) {
    if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
    if (segment.p_offset > limit || segment.p_filesz > limit - segment.p_offset) return {};
    if (segment.p_filesz > left) return {};
    left -= segment.p_filesz;
    spent += segment.p_filesz;
    file.resize(std::max<std::size_t>(file.size(), segment.p_offset + segment.p_filesz));
    const auto room = std::span(file).subspan(segment.p_offset, segment.p_filesz);
    const bool is_whole = memory.read(bias + segment.p_vaddr, room) == room.size();
    if (!is_whole && (segment.p_flags & PF_W) == 0) return {};
  }
  if (file.size() < sizeof(Elf64_Ehdr)) return {};
  Elf64_Ehdr header = head.header;
  if (header.e_shoff > file.size() ||
      file.size() - header.e_shoff < std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)) {
    header.e_shoff = 0;
    header.e_shnum = 0;
    header.e_shstrndx = SHN_UNDEF;
  }
  std::memcpy(file.data(), &header, sizeof header);

  // The loader has replaced pointers in the dynamic section by run-time addresses. This loop restores the original
  // values.
  for (const Elf64_Phdr& segment : head.segments) {
    if (segment.p_type != PT_DYNAMIC || bias == 0) continue;
    if (segment.p_offset > file.size() || segment.p_filesz > file.size() - segment.p_offset) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, file.data() + segment.p_offset + at, sizeof entry);
      const bool is_pointer = entry.d_tag == DT_STRTAB || entry.d_tag == DT_SYMTAB || entry.d_tag == DT_HASH ||
                              entry.d_tag == DT_GNU_HASH || entry.d_tag == DT_VERSYM;
      if (!is_pointer || entry.d_un.d_ptr < bias) continue;
      entry.d_un.d_ptr -= bias;
      std::memcpy(file.data() + segment.p_offset + at, &entry, sizeof entry);
    }
  }
  return file;
}

}  // namespace forksight::image
