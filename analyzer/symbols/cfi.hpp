// Call frame information of one module: a table that says how to compute the registers of a caller from the registers
// of a frame. Each row of the table is read once and kept. So for thousands of stacks through the same functions, each
// frame costs one look-up.
#pragma once

#include <elfutils/libdw.h>

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "symbols/elf_module.hpp"
#include "symbols/registers.hpp"

namespace forksight::symbols {

enum class Step {
  kCaller,       // now the registers are those of the caller
  kOutermost,    // the frame has no caller: a thread starts here
  kNoRule,       // there is no call frame information for this address
  kBeyondBytes,  // a needed value lies above the recorded bytes
  kUnknown,      // a needed value was not recorded, or makes no sense
};

class Cfi {
 public:
  explicit Cfi(const ElfModule& module) : module_(module) {}

  // Steps from the frame at link-time address `pc` to its caller. For a return address, pass the address minus one.
  // `registers` has run-time values, and its [kReturnAddress] is the pc of the frame. If the answer is kCaller,
  // `registers` then has the values of the caller. Otherwise `registers` does not change.
  Step step(std::uint64_t pc, Registers& registers, const StackBytes& stack);

  // Returns the CFA of the frame, if it can be computed.
  std::optional<std::uint64_t> frame_address(std::uint64_t pc, const Registers& registers, const StackBytes& stack);

  // Returns the number of bytes between rsp and the CFA at `pc`, if the CFA at `pc` is defined by rsp.
  std::optional<std::uint64_t> stack_depth(std::uint64_t pc);

  // Returns the number of bytes from the lowest saved register of the frame at `pc` up to the CFA of the frame. The
  // return address counts as a saved register.
  std::uint64_t saved_bytes(std::uint64_t pc);

  // True if the frame at `pc` is the kernel's signal frame. A signal interrupted the caller of that frame, so the pc of
  // the caller is exact and no return address.
  bool is_signal_frame(std::uint64_t pc);

 private:
  struct Rule {
    enum class Kind { kUndefined, kSame, kRegister, kMemory, kValue };
    Kind kind = Kind::kUndefined;
    std::uint64_t number = 0;          // kRegister
    std::vector<Dwarf_Op> operations;  // compute the address (kMemory) or the value (kValue)
  };
  struct Row {
    std::uint64_t end = 0;
    bool is_known = false;
    bool is_signal = false;
    std::size_t return_column = kReturnAddress;
    std::vector<Dwarf_Op> cfa;
    std::array<Rule, kRegisterCount> rules;
  };

  const Row& row_at(std::uint64_t pc);
  // nullopt: the rule has an expression with too many operations.
  static std::optional<Rule> read_rule(Dwarf_Frame* frame, int number);
  static bool read_row(Dwarf_CFI* cfi, std::uint64_t pc, std::uint64_t& start, Row& row);

  const ElfModule& module_;
  std::map<std::uint64_t, Row> rows_;  // by start
};

}  // namespace forksight::symbols
