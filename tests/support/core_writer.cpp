#include "support/core_writer.hpp"

#include <elf.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace forksight::test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kTop = 64U << 10U;
constexpr std::uint64_t kErestartsys = 512;

struct Piece {
  proc::Mapping mapping;
  std::uint64_t bytes = 0;  // the number of dumped bytes, from the start of the mapping
};

template <class T>
void put(std::vector<std::byte>& to, const T& value) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

void put_note(std::vector<std::byte>& to, std::uint32_t type, const std::vector<std::byte>& body) {
  put(to, Elf64_Nhdr{5, static_cast<std::uint32_t>(body.size()), type});
  put(to, std::to_array("CORE\0\0\0"));  // eight bytes with the padding and the literal's own NUL
  to.insert(to.end(), body.begin(), body.end());
  to.resize((to.size() + 3) / 4 * 4);
}

user_regs_struct registers_of(const image::Thread& thread) {
  const symbols::Registers from = *thread.registers;
  const auto value = [&](std::size_t number) { return from[number].value_or(0); };
  user_regs_struct to{};
  to.rax = thread.call ? 0 - kErestartsys : value(0);
  to.rdx = value(1);
  to.rcx = value(2);
  to.rbx = value(3);
  to.rsi = value(4);
  to.rdi = value(5);
  to.rbp = value(symbols::kRbp);
  to.rsp = value(symbols::kRsp);
  to.r8 = value(8);
  to.r9 = value(9);
  to.r10 = value(10);
  to.r11 = value(11);
  to.r12 = value(12);
  to.r13 = value(13);
  to.r14 = value(14);
  to.r15 = value(15);
  to.rip = value(symbols::kReturnAddress);
  to.orig_rax = thread.call ? static_cast<std::uint64_t>(thread.call->number) : ~std::uint64_t{0};
  to.fs_base = thread.fs_base;
  return to;
}

std::vector<std::byte> read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

bool is_file(const proc::Mapping& mapping) { return mapping.path.starts_with('/'); }

std::vector<std::byte> file_note(const image::Image& live) {
  std::vector<std::byte> body;
  std::string names;
  const auto count = std::count_if(live.mappings.begin(), live.mappings.end(), is_file);
  put(body, static_cast<std::uint64_t>(count));
  put(body, kPage);
  for (const proc::Mapping& mapping : live.mappings) {
    if (!is_file(mapping)) continue;
    for (const std::uint64_t word : {mapping.start, mapping.end, mapping.offset / kPage}) put(body, word);
    names += mapping.path + '\0';
  }
  for (const char c : names) body.push_back(static_cast<std::byte>(c));
  return body;
}

std::vector<std::byte> make_notes(const image::Image& live, const CoreScene& scene) {
  std::vector<std::byte> notes;
  bool is_first = true;
  for (const image::Thread& thread : live.threads) {
    if (!thread.registers) continue;
    elf_prstatus status{};
    status.pr_pid = thread.tid;
    status.pr_cursig = static_cast<short>(is_first ? scene.signal : 0);
    const user_regs_struct registers = registers_of(thread);
    std::memcpy(&status.pr_reg, &registers, sizeof registers);
    std::vector<std::byte> body;
    put(body, status);
    put_note(notes, NT_PRSTATUS, body);
    if (is_first) {
      elf_prpsinfo info{};
      info.pr_pid = live.pid;
      info.pr_ppid = live.ppid;
      std::strncpy(info.pr_fname, thread.name.c_str(), sizeof info.pr_fname - 1);
      body.clear();
      put(body, info);
      put_note(notes, NT_PRPSINFO, body);
    }
    is_first = false;
  }
  if (scene.has_auxiliary) put_note(notes, NT_AUXV, read_whole("/proc/" + std::to_string(live.pid) + "/auxv"));
  if (scene.has_files) put_note(notes, NT_FILE, file_note(live));
  return notes;
}

std::vector<Piece> make_pieces(const image::Image& live, const CoreScene& scene) {
  std::vector<Piece> pieces;
  for (const proc::Mapping& mapping : live.mappings) {
    const std::uint64_t size = mapping.end - mapping.start;
    if (!mapping.readable) continue;
    if (is_file(mapping) && !mapping.writable) {
      const bool has_first = scene.has_first_pages && mapping.offset == 0;
      if (has_first && !scene.has_file_segments) {
        Piece first{mapping, kPage};
        first.mapping.end = mapping.start + kPage;
        pieces.push_back(first);
      } else if (scene.has_file_segments) {
        pieces.push_back({mapping, has_first ? kPage : 0});
      }
      continue;
    }
    if (size <= scene.whole_up_to) {
      pieces.push_back({mapping, size});
      continue;
    }
    std::uint64_t lowest = mapping.end - kTop;
    for (const image::Thread& thread : live.threads) {
      const std::uint64_t sp = thread.registers ? (*thread.registers)[symbols::kRsp].value_or(0) : 0;
      if (sp >= mapping.start && sp < mapping.end) lowest = std::min(lowest, sp / kPage * kPage);
    }
    Piece top{mapping, mapping.end - lowest};
    top.mapping.start = lowest;
    pieces.push_back(top);
  }
  return pieces;
}

}  // namespace

std::vector<std::byte> make_core(const image::Image& live, const CoreScene& scene) {
  const std::vector<std::byte> notes = make_notes(live, scene);
  const std::vector<Piece> pieces = make_pieces(live, scene);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_CORE;
  header.e_machine = scene.machine;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<std::uint16_t>(pieces.size() + 1);

  std::vector<std::byte> core;
  put(core, header);
  std::uint64_t offset = sizeof header + (pieces.size() + 1) * sizeof(Elf64_Phdr);
  Elf64_Phdr entry{};
  entry.p_type = PT_NOTE;
  entry.p_offset = offset;
  entry.p_filesz = notes.size();
  put(core, entry);
  offset += notes.size();
  for (const Piece& piece : pieces) {
    entry = {};
    entry.p_type = PT_LOAD;
    entry.p_flags = (piece.mapping.readable ? PF_R : 0U) | (piece.mapping.writable ? PF_W : 0U) |
                    (piece.mapping.executable ? PF_X : 0U);
    entry.p_offset = offset;
    entry.p_vaddr = piece.mapping.start;
    entry.p_filesz = piece.bytes;
    entry.p_memsz = piece.mapping.end - piece.mapping.start;
    put(core, entry);
    offset += piece.bytes;
  }
  core.insert(core.end(), notes.begin(), notes.end());
  for (const Piece& piece : pieces) {
    std::vector<std::byte> bytes = live.memory->bytes(piece.mapping.start, piece.bytes);
    bytes.resize(piece.bytes);
    core.insert(core.end(), bytes.begin(), bytes.end());
  }
  return core;
}

void write_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

}  // namespace forksight::test
