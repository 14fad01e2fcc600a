// Follows what machine code does to registers and memory, as far as they are known. For the search of the code that
// releases a lock: it needs the addresses that code computes from the registers and the stack of a thread.
#pragma once

#include <Zydis/Zydis.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "symbols/registers.hpp"

namespace forksight::symbols {

// One instruction with its operands.
struct FullInstruction {
  ZydisDecodedInstruction decoded{};
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands{};

  bool is(ZydisMnemonic mnemonic) const { return decoded.mnemonic == mnemonic; }
};

// nullopt if the bytes are no instruction.
std::optional<FullInstruction> decode_fully(std::span<const std::byte> bytes);

class MachineState {
 public:
  // `registers`: by DWARF number. `memory` must outlive the state and its copies; it is the memory before the first
  // instruction.
  MachineState(const Registers& registers, const WordReader& memory);

  // By DWARF number.
  std::optional<std::uint64_t> value(std::size_t number) const { return values_[number]; }
  void forget(std::size_t number) { values_[number].reset(); }
  std::optional<std::uint64_t> read(std::uint64_t address) const;
  // The value of an operand; for one that is narrower than 8 bytes, its bits without a sign.
  std::optional<std::uint64_t> value_of(const ZydisDecodedOperand& operand, std::uint64_t next) const;
  // The address of a memory operand; nullopt if it is not known, or if the operand is no memory of the usual segments.
  // `next`: the run-time address behind the instruction.
  std::optional<std::uint64_t> address_of(const ZydisDecodedOperand& operand, std::uint64_t next) const;
  // Whether a conditional jump is taken; nullopt if that is not known.
  std::optional<bool> takes(const FullInstruction& jump) const;

  // The effect of an instruction that is no call, jump or return.
  void execute(const FullInstruction& instruction, std::uint64_t next);
  // A called function has returned: it has kept only the registers that it must keep.
  void pass_call();

 private:
  struct Result {
    std::optional<std::uint64_t> value;
    bool is_shared = false;  // it comes from memory that other code may have changed since
  };
  Result result_of(const FullInstruction& instruction, std::uint64_t next) const;
  bool is_shared(const ZydisDecodedOperand& operand, std::uint64_t next) const;
  void set(const ZydisDecodedOperand& operand, const Result& result, std::uint64_t next);
  void set_zero_flag(const FullInstruction& instruction, std::uint64_t next);

  std::array<std::optional<std::uint64_t>, 16> values_;
  std::array<bool, 16> is_shared_{};
  std::map<std::uint64_t, std::optional<std::uint64_t>> stores_;  // by the address of an aligned word
  std::optional<bool> is_zero_;                                   // the zero flag
  std::uint64_t stack_ = 0;                                       // rsp of the first instruction
  const WordReader& memory_;
};

}  // namespace forksight::symbols
