// Decodes one instruction of x86-64 machine code with Zydis, as far as the search for calls and frames needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace forksight::symbols {

struct Instruction {
  enum class Kind { kOther, kCall, kJump };
  std::uint64_t length = 0;
  Kind kind = Kind::kOther;
  std::optional<std::uint64_t> target;  // where a direct call or jump leads
  // of an indirect call or jump: the address of the word that holds its target, if the operand is relative to rip
  std::optional<std::uint64_t> slot;
};

// Decodes the instruction at the start of `bytes`, whose address is `address`. nullopt if these bytes are no
// instruction.
std::optional<Instruction> decode_instruction(std::span<const std::byte> bytes, std::uint64_t address);

// How many bytes a function with a frame pointer subtracts from rsp when it begins. `bytes` is the function's code. 0:
// nothing. nullopt: the function aligns the stack, or the amount is not a constant.
std::optional<std::uint64_t> prologue_subtraction(std::span<const std::byte> bytes);

}  // namespace forksight::symbols
