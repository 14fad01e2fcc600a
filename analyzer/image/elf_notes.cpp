#include "image/elf_notes.hpp"

#include <elf.h>

#include <cstring>

namespace forksight::image {

// libelf reads notes only from an ELF file. For the notes of a core, that would take a copy of all notes, which may be
// 128 MiB.
void for_each_note(std::span<const std::byte> notes, std::uint64_t alignment,
                   const std::function<bool(const ElfNote&)>& visit) {
  const std::uint64_t unit = alignment == 8 ? 8 : 4;
  const auto padded = [&](std::uint64_t size) { return (size + unit - 1) & ~(unit - 1); };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr head;
    std::memcpy(&head, notes.data(), sizeof head);
    const std::uint64_t body = padded(sizeof head + head.n_namesz);
    if (body > notes.size() || head.n_descsz > notes.size() - body) return;
    const std::string_view owner(reinterpret_cast<const char*>(notes.data() + sizeof head), head.n_namesz);
    if (!visit({head.n_type, owner.substr(0, owner.find('\0')), notes.subspan(body, head.n_descsz)})) return;
    const std::uint64_t next = padded(body + head.n_descsz);
    if (next >= notes.size()) return;
    notes = notes.subspan(next);
  }
}

}  // namespace forksight::image
