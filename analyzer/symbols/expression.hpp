// The part of DWARF's stack machine that call frame information uses.
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
  std::optional<std::uint64_t> cfa;   // for DW_OP_call_frame_cfa
  std::uint64_t missing_address = 0;  // set if a read outside of the recorded bytes was the obstacle
};

// The top of the machine's stack after `operations`; nothing if a register, memory or an operation is unknown.
// `operations` hold no DW_OP_stack_value and no register location.
std::optional<std::uint64_t> evaluate(std::span<const Dwarf_Op> operations, ExpressionContext& context);

}  // namespace forksight::symbols
