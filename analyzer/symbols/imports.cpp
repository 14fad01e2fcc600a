#include "symbols/imports.hpp"

#include <gelf.h>

#include <algorithm>

#include "files/budgets.hpp"

namespace forksight::symbols {
namespace {

Elf_Scn* find_dynamic_symbols(Elf* elf, GElf_Shdr& header) {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    if (gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_DYNSYM) return section;
  }
  return nullptr;
}

}  // namespace

bool may_import(const ElfModule& module, std::span<const std::string_view> names) {
  GElf_Addr bias = 0;
  Elf* const elf = dwfl_module_getelf(module.dwfl(), &bias);
  GElf_Shdr header;
  Elf_Scn* const section = elf == nullptr ? nullptr : find_dynamic_symbols(elf, header);
  Elf_Data* const data = section == nullptr ? nullptr : elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return true;
  const std::size_t count = header.sh_size / header.sh_entsize;
  if (count > files::kMaxSymbols) return true;
  for (std::size_t i = 1; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return true;
    if (symbol.st_shndx != SHN_UNDEF) continue;
    const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr || std::ranges::find(names, name) != names.end()) return true;
  }
  return false;
}

}  // namespace forksight::symbols
