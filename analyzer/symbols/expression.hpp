// Implements the part of DWARF's stack machine that call frame information uses.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <span>

#include "symbols/registers.hpp"

namespace forksight::symbols {

struct ExpressionContext {
  const Registers& registers;
  const StackBytes& stack;
  std::optional<std::uint64_t> cfa;   // the result of DW_OP_call_frame_cfa
  std::uint64_t missing_address = 0;  // the address of a read that failed, because it was outside of the recorded bytes
};

// Runs `operations` and returns the top of the machine's stack. nullopt if the value of a register or of a word of
// memory is unknown, or if an operation is unknown. `operations` must contain no DW_OP_stack_value and no register
// location.
std::optional<std::uint64_t> evaluate(std::span<const Dwarf_Op> operations, ExpressionContext& context);

}  // namespace forksight::symbols
