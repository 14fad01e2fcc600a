// What one binary's x86-64 machine code says about who calls whom. Nothing is disassembled: a displacement that leads
// exactly to the start of a function is taken for what it is, other bytes with the same pattern lead elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/elf_module.hpp"

namespace forksight::symbols {

struct CodeRange {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool contains(std::uint64_t address) const { return address >= start && address < end; }
};

// A call or a jump that leaves its function: to `target`, or through the linkage table to the function `name`.
struct Branch {
  std::uint64_t end = 0;           // of the instruction: for a call the return address
  std::uint64_t target = 0;        // 0 if it is by name
  const char* name = nullptr;      // lives as long as the module
  bool is_call = false;
};

struct CodeFacts {
  std::vector<Branch> branches;               // in order of address
  std::vector<std::uint64_t> pointer_calls;   // ends of the calls whose target the code does not tell
  bool is_thunk = false;                      // small, and jumps through a pointer
};

class MachineCode {
 public:
  explicit MachineCode(const ElfModule& elf);

  // The function, or part of one, that the unwind table has for `address`.
  std::optional<CodeRange> function_at(std::uint64_t address) const;
  const CodeFacts& facts(const CodeRange& function);
  // The call that ends right before `address`; nothing if it is by pointer.
  std::optional<Branch> call_before(std::uint64_t address);

 private:
  void read_unwind_table();
  void read_linkage_table();
  std::uint64_t table_entry(std::size_t index) const;
  bool is_function_start(std::uint64_t address) const;
  // The name that the slot of the linkage table at `address` stands for; null if it is none.
  const char* slot_name(std::uint64_t address) const;
  // The same for a stub that jumps through such a slot.
  const char* stub_name(std::uint64_t address) const;
  std::optional<Branch> read_branch(std::uint64_t address, std::span<const std::byte> bytes) const;

  const ElfModule& elf_;
  std::uint64_t table_address_ = 0;
  std::uint64_t header_address_ = 0;
  std::size_t table_size_ = 0;
  std::unordered_map<std::uint64_t, const char*> slots_;
  std::unordered_map<std::uint64_t, CodeFacts> facts_;  // by start
};

// How much a function with a frame pointer subtracts from rsp as it begins: 0 if nothing, no value if it aligns the
// stack or if the amount is not a constant.
std::optional<std::uint64_t> prologue_subtraction(const ElfModule& elf, const CodeRange& function);

}  // namespace forksight::symbols
