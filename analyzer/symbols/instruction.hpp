// One instruction of x86-64 machine code, as far as calls and frames need it. Decoded by Zydis.
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
  std::optional<std::uint64_t> slot;    // of an indirect one: the word that it goes through, if that lies in the module
};

// The instruction at the start of `bytes`, which stand at `address`; nothing if these bytes are none.
std::optional<Instruction> decode_instruction(std::span<const std::byte> bytes, std::uint64_t address);

// How much the function at the start of `bytes`, one with a frame pointer, subtracts from rsp as it begins: 0 if
// nothing, no value if it aligns the stack or if the amount is not a constant.
std::optional<std::uint64_t> prologue_subtraction(std::span<const std::byte> bytes);

}  // namespace forksight::symbols
