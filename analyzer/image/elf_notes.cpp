#include "image/elf_notes.hpp"

#include <elf.h>
#include <gelf.h>

#include <cstring>
#include <memory>
#include <vector>

namespace forksight::image {
namespace {

// Makes an ELF file, because libelf reads notes only from such a file: an ELF header, followed by the notes.
std::vector<char> as_file(std::span<const std::byte> notes) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_CORE;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  std::vector<char> file(sizeof header + notes.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, notes.data(), notes.size());
  return file;
}

}  // namespace

void for_each_note(std::span<const std::byte> notes, std::uint64_t alignment,
                   const std::function<bool(const ElfNote&)>& visit) {
  if (notes.size() < sizeof(Elf64_Nhdr)) return;
  elf_version(EV_CURRENT);
  std::vector<char> file = as_file(notes);
  const std::unique_ptr<Elf, decltype(&elf_end)> elf(elf_memory(file.data(), file.size()), &elf_end);
  if (elf == nullptr) return;
  Elf_Data* const data =
      elf_getdata_rawchunk(elf.get(), sizeof(Elf64_Ehdr), notes.size(), alignment == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
  if (data == nullptr) return;
  const std::span bytes(static_cast<const std::byte*>(data->d_buf), data->d_size);
  GElf_Nhdr head;
  std::size_t name = 0;
  std::size_t body = 0;
  for (std::size_t at = 0, next = 0; (next = gelf_getnote(data, at, &head, &name, &body)) > at; at = next) {
    const std::string_view owner(reinterpret_cast<const char*>(bytes.data() + name), head.n_namesz);
    if (!visit({head.n_type, owner.substr(0, owner.find('\0')), bytes.subspan(body, head.n_descsz)})) return;
  }
}

}  // namespace forksight::image
