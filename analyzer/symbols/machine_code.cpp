#include "symbols/machine_code.hpp"

#include <fmt/format.h>
#include <gelf.h>

#include <algorithm>
#include <cstring>

#include "files/budgets.hpp"
#include "files/costly_files.hpp"

namespace forksight::symbols {
namespace {

// At most this many bytes of a function are scanned.
constexpr std::uint64_t kMaxFunctionBytes = 256U << 10U;
constexpr std::uint64_t kMaxThunkBytes = 96;

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint8_t>(bytes[at]);
}

std::uint64_t displacement_at(std::span<const std::byte> bytes, std::size_t at) {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return static_cast<std::uint64_t>(std::int64_t{value});
}

}  // namespace

MachineCode::MachineCode(ElfModule& elf) : elf_(elf) {
  read_unwind_table();
  if (elf_.may_read_code()) read_linkage_table();
}

// .eh_frame_hdr contains the start of every function, in ascending order. Stripped files have this section, too (LSB
// Core 10.6.2).
void MachineCode::read_unwind_table() {
  header_address_ = elf_.unwind_table_address();
  const auto bytes = elf_.bytes_at(header_address_);
  constexpr std::uint8_t kUnsigned4 = 0x03;
  constexpr std::uint8_t kTableRelativeSigned4 = 0x3b;
  if (header_address_ == 0 || bytes.size() < 12 || byte_at(bytes, 0) != 1 || byte_at(bytes, 2) != kUnsigned4 ||
      byte_at(bytes, 3) != kTableRelativeSigned4) {
    return;
  }
  std::uint32_t count = 0;
  std::memcpy(&count, bytes.data() + 8, sizeof count);
  table_address_ = header_address_ + 12;
  table_size_ = std::min<std::size_t>(count, (bytes.size() - 12) / 8);
}

// Finds the section .got, which holds the addresses of functions and objects. Only the loader writes to this section.
CodeRange MachineCode::find_offset_table(Elf* elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return {};
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* const name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr && std::string_view(name) == ".got") return {header.sh_addr, header.sh_addr + header.sh_size};
  }
  return {};
}

void MachineCode::read_linkage_table() {
  GElf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(elf_.dwfl(), &bias);
  const CodeRange offset_table = find_offset_table(elf);
  // How many relocations may still be read. All sections together have one limit, because many sections may refer to
  // the same bytes of the file.
  std::uint64_t left = files::kMaxRelocations;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_RELA || header.sh_entsize == 0) continue;
    Elf_Scn* symbols = elf_getscn(elf, header.sh_link);
    GElf_Shdr symbols_header;
    if (symbols == nullptr || gelf_getshdr(symbols, &symbols_header) == nullptr) continue;
    Elf_Data* relocations = elf_getdata(section, nullptr);
    Elf_Data* names = elf_getdata(symbols, nullptr);
    if (relocations == nullptr || names == nullptr || symbols_header.sh_type != SHT_DYNSYM) continue;
    const std::uint64_t count = header.sh_size / header.sh_entsize;
    if (count > left) {
      elf_.add_limit(fmt::format("{}: has more than {} relocations; some of its calls are not known", elf_.path(),
                                 files::kMaxRelocations));
      return;
    }
    left -= count;
    for (std::uint64_t i = 0; i < count; ++i) {
      GElf_Rela relocation;
      GElf_Sym symbol;
      if (gelf_getrela(relocations, static_cast<int>(i), &relocation) == nullptr) break;
      const auto type = GELF_R_TYPE(relocation.r_info);
      if (type == R_X86_64_RELATIVE && offset_table.contains(relocation.r_offset)) {
        slot_targets_.emplace(relocation.r_offset, static_cast<std::uint64_t>(relocation.r_addend));
      }
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      if (gelf_getsym(names, static_cast<int>(GELF_R_SYM(relocation.r_info)), &symbol) == nullptr) continue;
      const char* name = elf_strptr(elf, symbols_header.sh_link, symbol.st_name);
      if (name != nullptr) slots_.emplace(relocation.r_offset, name);
    }
  }
}

std::uint64_t MachineCode::table_entry(std::size_t index) const {
  const auto bytes = elf_.bytes_at(table_address_ + index * 8);
  return bytes.size() < 8 ? 0 : header_address_ + displacement_at(bytes, 0);
}

std::optional<CodeRange> MachineCode::function_at(std::uint64_t address) const {
  std::size_t low = 0;
  std::size_t high = table_size_;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (table_entry(middle) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  const std::uint64_t start = table_entry(low - 1);
  const auto bytes = elf_.bytes_at(start);
  const std::uint64_t segment_end = start + bytes.size();
  const std::uint64_t end = low < table_size_ ? std::min(table_entry(low), segment_end) : segment_end;
  if (address >= end || !elf_.is_executable(start)) return std::nullopt;
  return CodeRange{start, end};
}

bool MachineCode::is_function_start(std::uint64_t address) const {
  const auto function = function_at(address);
  return function && function->start == address;
}

const char* MachineCode::slot_name(std::uint64_t address) const {
  const auto found = slots_.find(address);
  return found == slots_.end() ? nullptr : found->second;
}

const char* MachineCode::stub_name(std::uint64_t address) const {
  auto bytes = elf_.bytes_at(address);
  // A stub is "jmp *slot(%rip)". In code that is made for CET, an endbr64 comes before the jump.
  for (int instructions = 0; instructions < 2; ++instructions) {
    const auto instruction = decode_instruction(bytes, address);
    if (!instruction) return nullptr;
    if (instruction->kind != Instruction::Kind::kOther)
      return instruction->slot ? slot_name(*instruction->slot) : nullptr;
    bytes = bytes.subspan(instruction->length);
    address += instruction->length;
  }
  return nullptr;
}

std::optional<Branch> MachineCode::follow(const Instruction& instruction, std::uint64_t end) const {
  const bool is_call = instruction.kind == Instruction::Kind::kCall;
  if (instruction.slot) {
    const char* name = slot_name(*instruction.slot);
    if (name != nullptr) return Branch{end, 0, name, is_call};
    // Rust calls functions of the same program through a slot of the section .got.
    const auto own = slot_targets_.find(*instruction.slot);
    if (own == slot_targets_.end() || !is_function_start(own->second)) return std::nullopt;
    return Branch{end, own->second, nullptr, is_call};
  }
  if (!instruction.target || !elf_.is_executable(*instruction.target)) return std::nullopt;
  if (const char* name = stub_name(*instruction.target); name != nullptr) return Branch{end, 0, name, is_call};
  if (is_call && !is_function_start(*instruction.target)) return std::nullopt;
  return Branch{end, *instruction.target, nullptr, is_call};
}

CodeFacts MachineCode::read_facts(const CodeRange& function) const {
  CodeFacts facts;
  auto bytes = elf_.bytes_at(function.start);
  const std::uint64_t size = std::min({function.end - function.start, std::uint64_t{bytes.size()}, kMaxFunctionBytes});
  bytes = bytes.first(size);
  facts.end = function.start + size;
  for (std::uint64_t at = 0; at < size;) {
    const auto instruction = decode_instruction(bytes.subspan(at), function.start + at);
    at += instruction ? instruction->length : 1;
    if (!instruction || instruction->kind == Instruction::Kind::kOther) continue;
    const std::uint64_t end = function.start + at;
    const bool is_call = instruction->kind == Instruction::Kind::kCall;
    if (is_call) facts.call_ends.push_back(end);
    if (!is_call && instruction->target && function.contains(*instruction->target)) continue;
    if (const auto branch = follow(*instruction, end)) {
      facts.branches.push_back(*branch);
    } else if (!instruction->target) {
      if (is_call) facts.pointer_calls.push_back(end);
      if (!is_call && size <= kMaxThunkBytes) facts.is_thunk = true;
    }
  }
  return facts;
}

const CodeFacts& MachineCode::facts(const CodeRange& function) {
  const auto [entry, is_new] = facts_.try_emplace(function.start);
  if (is_new && elf_.may_read_code()) {
    const files::FileWork work(elf_.path());
    entry->second = read_facts(function);
  }
  return entry->second;
}

const CodeFacts* MachineCode::facts_up_to(std::uint64_t address) {
  const auto function = function_at(address - 1);
  if (!function) return nullptr;
  const CodeFacts& facts = this->facts(*function);
  return address <= facts.end ? &facts : nullptr;
}

std::optional<Instruction> MachineCode::guess_call_before(std::uint64_t address) const {
  if (!elf_.is_executable(address - 1)) return std::nullopt;
  // Tries the usual lengths of a call first: 5 (the opcode e8 and four bytes) and 6 (the opcode ff /2 and a
  // displacement of four bytes).
  for (const std::uint64_t length : {5U, 6U, 2U, 3U, 4U, 7U, 8U, 9U}) {
    if (length > address) continue;
    const auto bytes = elf_.bytes_at(address - length);
    if (bytes.size() < length) continue;
    const auto instruction = decode_instruction(bytes.first(length), address - length);
    if (!instruction || instruction->kind != Instruction::Kind::kCall || instruction->length != length) continue;
    if (!instruction->target || elf_.is_executable(*instruction->target)) return instruction;
  }
  return std::nullopt;
}

bool MachineCode::is_after_call(std::uint64_t address) {
  if (address == 0) return false;
  const CodeFacts* facts = facts_up_to(address);
  return facts != nullptr ? std::ranges::binary_search(facts->call_ends, address)
                          : guess_call_before(address).has_value();
}

std::optional<Branch> MachineCode::call_before(std::uint64_t address) {
  if (address == 0) return std::nullopt;
  const CodeFacts* facts = facts_up_to(address);
  if (facts == nullptr) {
    const auto call = guess_call_before(address);
    return call ? follow(*call, address) : std::nullopt;
  }
  const auto branch = std::ranges::lower_bound(facts->branches, address, {}, &Branch::end);
  if (branch == facts->branches.end() || branch->end != address || !branch->is_call) return std::nullopt;
  return *branch;
}

}  // namespace forksight::symbols
