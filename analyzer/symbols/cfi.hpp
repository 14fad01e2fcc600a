// Call frame information of one module: how to get from a frame's registers to its caller's. Rows are read once and
// kept, so that thousands of stacks through the same functions cost a look-up a frame.
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
  kCaller,        // the registers are the caller's now
  kOutermost,     // the frame has no caller: a thread starts here
  kNoRule,        // no call frame information for this address
  kBeyondBytes,   // what is needed lies above the recorded bytes
  kUnknown,       // what is needed was not recorded or makes no sense
};

class Cfi {
 public:
  explicit Cfi(const ElfModule& module) : module_(module) {}

  // From the frame at link-time address `pc` (for a return address: one less) to its caller. `registers` are run-time
  // values, with [kReturnAddress] that of the frame itself; they change only if the answer is kCaller.
  Step step(std::uint64_t pc, Registers& registers, const StackBytes& stack);

  // The frame's CFA, if it can be computed.
  std::optional<std::uint64_t> frame_address(std::uint64_t pc, const Registers& registers, const StackBytes& stack);

  // Bytes between rsp and the CFA at `pc`, if the CFA is defined by rsp there.
  std::optional<std::uint64_t> stack_depth(std::uint64_t pc);

  // Bytes from the lowest register that the frame at `pc` has saved up to its CFA, the return address included.
  std::uint64_t saved_bytes(std::uint64_t pc);

  // The frame at `pc` was interrupted by a signal: its caller's pc is exact, not a return address.
  bool is_signal_frame(std::uint64_t pc);

 private:
  struct Rule {
    enum class Kind { kUndefined, kSame, kRegister, kMemory, kValue };
    Kind kind = Kind::kUndefined;
    std::uint64_t number = 0;             // kRegister
    std::vector<Dwarf_Op> operations;     // kMemory: of its address; kValue: of the value
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
  static Rule read_rule(Dwarf_Frame* frame, int number);
  static bool read_row(Dwarf_CFI* cfi, std::uint64_t pc, std::uint64_t& start, Row& row);

  const ElfModule& module_;
  std::map<std::uint64_t, Row> rows_;  // by start
};

}  // namespace forksight::symbols
