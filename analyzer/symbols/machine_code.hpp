// Finds calls in the x86-64 machine code of one binary. The unwind table has the start of each function. A function is
// disassembled from its start. So bytes that only look like a call are not mistaken for a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/elf_module.hpp"
#include "symbols/instruction.hpp"

namespace forksight::symbols {

struct CodeRange {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool contains(std::uint64_t address) const { return address >= start && address < end; }
};

// A call, or a jump that leaves its function. If the branch goes through a slot of the linkage table, `name` is the
// function that the slot stands for. All other branches have a `target` in the same binary. The instruction contains
// the address of the target, or reads this address from the binary's table of addresses (section .got).
struct Branch {
  std::uint64_t end = 0;       // the end of the instruction; for a call, this is the return address
  std::uint64_t target = 0;    // 0 if the branch goes to `name`
  const char* name = nullptr;  // lives as long as the module
  bool is_call = false;
};

struct CodeFacts {
  std::vector<Branch> branches;              // ordered by address
  std::vector<std::uint64_t> pointer_calls;  // ends of the calls whose target the code does not show
  std::vector<std::uint64_t> call_ends;      // ends of all calls, ascending
  std::uint64_t end = 0;                     // end of the code that was read, which may be only a part of the function
  bool is_thunk = false;                     // true if the function is small, and jumps through a pointer
};

class MachineCode {
 public:
  explicit MachineCode(ElfModule& elf);

  // Returns the range of the unwind table that contains `address`. The range is a function or a part of a function.
  std::optional<CodeRange> function_at(std::uint64_t address) const;
  const CodeFacts& facts(const CodeRange& function);
  // True if a call instruction ends right before `address`.
  bool is_after_call(std::uint64_t address);
  // Returns the call that ends right before `address`; nullopt if there is no such call, or if its target is not known.
  std::optional<Branch> call_before(std::uint64_t address);

 private:
  void read_unwind_table();
  void read_linkage_table();
  static CodeRange find_offset_table(Elf* elf);
  std::uint64_t table_entry(std::size_t index) const;
  bool is_function_start(std::uint64_t address) const;
  // Returns the name of the function whose slot of the linkage table is at `address`; null if no slot is there.
  const char* slot_name(std::uint64_t address) const;
  // Like slot_name(), but for the address of a stub that jumps through such a slot.
  const char* stub_name(std::uint64_t address) const;
  // Finds the target of the call or jump `instruction`. `end` is the end of that instruction.
  std::optional<Branch> follow(const Instruction& instruction, std::uint64_t end) const;
  CodeFacts read_facts(const CodeRange& function) const;
  // Returns the facts of the function that contains the code before `address`; null if the function was not read up to
  // `address`.
  const CodeFacts* facts_up_to(std::uint64_t address);
  // For code that no unwind table covers. If the bytes before `address` can be decoded as a call, returns this call.
  std::optional<Instruction> guess_call_before(std::uint64_t address) const;

  ElfModule& elf_;
  std::uint64_t table_address_ = 0;
  std::uint64_t header_address_ = 0;
  std::size_t table_size_ = 0;
  std::unordered_map<std::uint64_t, const char*> slots_;
  // Slots of the section .got that hold an address in this binary. The key is the address of the slot, and the value is
  // the address in the slot.
  std::unordered_map<std::uint64_t, std::uint64_t> slot_targets_;
  std::unordered_map<std::uint64_t, CodeFacts> facts_;  // by start
};

}  // namespace forksight::symbols
