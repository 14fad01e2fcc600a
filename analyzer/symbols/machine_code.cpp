#include "symbols/machine_code.hpp"

#include <gelf.h>

#include <algorithm>
#include <cstring>

#include "symbols/call_site.hpp"

namespace forksight::symbols {
namespace {

// Larger functions are scanned up to here.
constexpr std::uint64_t kMaxFunctionBytes = 256U << 10U;
constexpr std::uint64_t kMaxThunkBytes = 96;

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t at) { return std::to_integer<std::uint8_t>(bytes[at]); }

std::uint64_t displacement_at(std::span<const std::byte> bytes, std::size_t at) {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return static_cast<std::uint64_t>(std::int64_t{value});
}

bool starts_with(std::span<const std::byte> bytes, std::initializer_list<std::uint8_t> pattern) {
  if (bytes.size() < pattern.size()) return false;
  std::size_t i = 0;
  return std::all_of(pattern.begin(), pattern.end(), [&](std::uint8_t value) { return byte_at(bytes, i++) == value; });
}

}  // namespace

MachineCode::MachineCode(const ElfModule& elf) : elf_(elf) {
  read_unwind_table();
  read_linkage_table();
}

// .eh_frame_hdr has the start of every function, sorted, in stripped files too (LSB Core 10.6.2).
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

void MachineCode::read_linkage_table() {
  GElf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(elf_.dwfl(), &bias);
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
    for (std::uint64_t i = 0; i < count && i <= INT32_MAX; ++i) {
      GElf_Rela relocation;
      GElf_Sym symbol;
      if (gelf_getrela(relocations, static_cast<int>(i), &relocation) == nullptr) break;
      const auto type = GELF_R_TYPE(relocation.r_info);
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
  std::uint64_t at = address;
  const auto skip = [&](std::size_t count) {
    bytes = bytes.subspan(count);
    at += count;
  };
  if (starts_with(bytes, {0xf3, 0x0f, 0x1e, 0xfa})) skip(4);  // endbr64
  if (starts_with(bytes, {0xf2})) skip(1);                    // bnd
  if (!starts_with(bytes, {0xff, 0x25}) || bytes.size() < 6) return nullptr;
  return slot_name(at + 6 + displacement_at(bytes, 2));
}

std::optional<Branch> MachineCode::read_branch(std::uint64_t address, std::span<const std::byte> bytes) const {
  const std::uint8_t first = byte_at(bytes, 0);
  std::size_t opcode_bytes = 0;
  if (first == 0xe8 || first == 0xe9) opcode_bytes = 1;
  if (first == 0x0f && bytes.size() > 1 && (byte_at(bytes, 1) & 0xf0U) == 0x80) opcode_bytes = 2;
  if (opcode_bytes > 0 && bytes.size() >= opcode_bytes + 4) {
    const std::uint64_t end = address + opcode_bytes + 4;
    const std::uint64_t target = end + displacement_at(bytes, opcode_bytes);
    if (!elf_.is_executable(target)) return std::nullopt;
    if (const char* name = stub_name(target); name != nullptr) return Branch{end, 0, name, first == 0xe8};
    if (first == 0xe8 && !is_function_start(target)) return std::nullopt;
    return Branch{end, target, nullptr, first == 0xe8};
  }
  const bool is_call = starts_with(bytes, {0xff, 0x15});
  if ((is_call || starts_with(bytes, {0xff, 0x25})) && bytes.size() >= 6) {
    const std::uint64_t end = address + 6;
    if (const char* name = slot_name(end + displacement_at(bytes, 2)); name != nullptr) {
      return Branch{end, 0, name, is_call};
    }
  }
  return std::nullopt;
}

const CodeFacts& MachineCode::facts(const CodeRange& function) {
  const auto [entry, is_new] = facts_.try_emplace(function.start);
  CodeFacts& facts = entry->second;
  if (!is_new) return facts;
  auto bytes = elf_.bytes_at(function.start);
  const std::uint64_t size = std::min({function.end - function.start, std::uint64_t{bytes.size()}, kMaxFunctionBytes});
  bytes = bytes.first(size);
  for (std::uint64_t at = 0; at < size; ++at) {
    const auto branch = read_branch(function.start + at, bytes.subspan(at));
    if (branch) {
      if (branch->is_call || branch->name != nullptr || !function.contains(branch->target)) {
        facts.branches.push_back(*branch);
        at = branch->end - function.start - 1;
      }
      continue;
    }
    // After another ff it is a part of a negative number, as a rule.
    if (byte_at(bytes, at) != 0xff || at + 1 >= size || (at > 0 && byte_at(bytes, at - 1) == 0xff)) continue;
    const std::size_t length = indirect_call_length(bytes.subspan(at));
    if (length > 0 && at + length <= size) facts.pointer_calls.push_back(function.start + at + length);
    const unsigned operation = (unsigned{byte_at(bytes, at + 1)} >> 3U) & 7U;
    if (operation == 4 && size <= kMaxThunkBytes) facts.is_thunk = true;
  }
  return facts;
}

std::optional<Branch> MachineCode::call_before(std::uint64_t address) {
  for (const std::uint64_t length : {std::uint64_t{5}, std::uint64_t{6}}) {
    if (address < length) continue;
    const auto bytes = elf_.bytes_at(address - length);
    if (bytes.size() < length) continue;
    const auto branch = read_branch(address - length, bytes.first(length));
    if (branch && branch->is_call && branch->end == address) return branch;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> prologue_subtraction(const ElfModule& elf, const CodeRange& function) {
  constexpr std::size_t kMaxPrologueBytes = 64;
  auto bytes = elf.bytes_at(function.start);
  bytes = bytes.first(std::min({bytes.size(), std::size_t{function.end - function.start}, kMaxPrologueBytes}));
  if (starts_with(bytes, {0xf3, 0x0f, 0x1e, 0xfa})) bytes = bytes.subspan(4);  // endbr64
  if (starts_with(bytes, {0x55, 0x48, 0x89, 0xe5})) {
    bytes = bytes.subspan(4);
    for (;;) {  // pushes of rbx and r12 to r15
      if (starts_with(bytes, {0x53})) {
        bytes = bytes.subspan(1);
      } else if (starts_with(bytes, {0x41}) && bytes.size() > 1 && (byte_at(bytes, 1) & 0xfcU) == 0x54) {
        bytes = bytes.subspan(2);
      } else {
        break;
      }
    }
    if (starts_with(bytes, {0x50})) return 8;  // push %rax: Clang's way to make room for one word
  }
  for (; !bytes.empty(); bytes = bytes.subspan(1)) {
    if (byte_at(bytes, 0) == 0xe8 || byte_at(bytes, 0) == 0xc3) break;  // a call or a return: it has begun
    if (starts_with(bytes, {0x48, 0x83, 0xe4})) return std::nullopt;    // and $n,%rsp
    if (starts_with(bytes, {0x48, 0x29}) && bytes.size() > 2 && (byte_at(bytes, 2) & 0xc7U) == 0xc4) {
      return std::nullopt;  // sub %reg,%rsp
    }
    if (starts_with(bytes, {0x48, 0x83, 0xc4, 0x80})) return 128;  // add $-128: shorter than sub $128
    if (starts_with(bytes, {0x48, 0x83, 0xec}) && bytes.size() >= 4) return byte_at(bytes, 3);
    if (starts_with(bytes, {0x48, 0x81, 0xec}) && bytes.size() >= 7) return displacement_at(bytes, 3);
  }
  return 0;
}

}  // namespace forksight::symbols
