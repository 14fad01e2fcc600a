// Decodes one instruction of x86-64 machine code with Zydis. Only what the search for calls and frames needs is
// decoded.
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
  std::optional<std::uint64_t> target;  // the target of a direct call or jump
  // for an indirect call or jump whose operand is relative to rip: the address of the word that contains the target
  std::optional<std::uint64_t> slot;
};

// Decodes the instruction at the start of `bytes`, whose address is `address`. nullopt if these bytes are no
// instruction.
std::optional<Instruction> decode_instruction(std::span<const std::byte> bytes, std::uint64_t address);

// Returns the number of bytes that a function with a frame pointer subtracts from rsp when it begins. `bytes` is the
// code of the function. nullopt: the function aligns the stack, or the number is not a constant.
std::optional<std::uint64_t> prologue_subtraction(std::span<const std::byte> bytes);

}  // namespace forksight::symbols
