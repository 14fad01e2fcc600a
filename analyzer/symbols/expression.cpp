#include "symbols/expression.hpp"

#include <dwarf.h>

#include <array>

namespace forksight::symbols {
namespace {

class Machine {
 public:
  explicit Machine(ExpressionContext& context) : context_(context) {}

  bool push(std::uint64_t value) {
    if (depth_ == stack_.size()) return false;
    stack_[depth_++] = value;
    return true;
  }
  bool pop(std::uint64_t& value) {
    if (depth_ == 0) return false;
    value = stack_[--depth_];
    return true;
  }
  bool push_register(std::uint64_t number, std::uint64_t offset) {
    if (number >= kRegisterCount || !context_.registers[number]) return false;
    return push(*context_.registers[number] + offset);
  }

  bool step(const Dwarf_Op& op);

 private:
  bool unary(const Dwarf_Op& op);
  bool binary(const Dwarf_Op& op);

  ExpressionContext& context_;
  std::array<std::uint64_t, 32> stack_{};
  std::size_t depth_ = 0;
};

bool Machine::unary(const Dwarf_Op& op) {
  std::uint64_t a = 0;
  if (!pop(a)) return false;
  switch (op.atom) {
    case DW_OP_deref: {
      const auto value = context_.stack.read(a);
      if (!value) context_.missing_address = a;
      return value && push(*value);
    }
    case DW_OP_plus_uconst: return push(a + op.number);
    case DW_OP_neg: return push(0 - a);
    case DW_OP_not: return push(~a);
    case DW_OP_dup: return push(a) && push(a);
    default: return false;
  }
}

bool Machine::binary(const Dwarf_Op& op) {
  std::uint64_t b = 0;
  std::uint64_t a = 0;
  if (!pop(b) || !pop(a)) return false;
  const auto sa = static_cast<std::int64_t>(a);
  const auto sb = static_cast<std::int64_t>(b);
  switch (op.atom) {
    case DW_OP_plus: return push(a + b);
    case DW_OP_minus: return push(a - b);
    case DW_OP_mul: return push(a * b);
    case DW_OP_and: return push(a & b);
    case DW_OP_or: return push(a | b);
    case DW_OP_xor: return push(a ^ b);
    case DW_OP_shl: return push(b < 64 ? a << b : 0);
    case DW_OP_shr: return push(b < 64 ? a >> b : 0);
    case DW_OP_shra: return push(static_cast<std::uint64_t>(sa >> (b < 63 ? b : 63)));
    case DW_OP_eq: return push(sa == sb);
    case DW_OP_ne: return push(sa != sb);
    case DW_OP_lt: return push(sa < sb);
    case DW_OP_le: return push(sa <= sb);
    case DW_OP_gt: return push(sa > sb);
    case DW_OP_ge: return push(sa >= sb);
    case DW_OP_swap: return push(b) && push(a);
    case DW_OP_over: return push(a) && push(b) && push(a);
    default: return false;
  }
}

bool Machine::step(const Dwarf_Op& op) {
  if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) return push(std::uint64_t{op.atom} - DW_OP_lit0);
  if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) return push_register(op.atom - DW_OP_breg0, op.number);
  switch (op.atom) {
    case DW_OP_nop: return true;
    case DW_OP_bregx: return push_register(op.number, op.number2);
    case DW_OP_call_frame_cfa: return context_.cfa && push(*context_.cfa);
    // libdw has already widened and sign-extended the operands.
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts: return push(op.number);
    case DW_OP_drop: {
      std::uint64_t dropped = 0;
      return pop(dropped);
    }
    case DW_OP_deref:
    case DW_OP_plus_uconst:
    case DW_OP_neg:
    case DW_OP_not:
    case DW_OP_dup: return unary(op);
    default: return binary(op);
  }
}

}  // namespace

std::optional<std::uint64_t> evaluate(std::span<const Dwarf_Op> operations, ExpressionContext& context) {
  Machine machine(context);
  for (const Dwarf_Op& op : operations) {
    if (!machine.step(op)) return std::nullopt;
  }
  std::uint64_t top = 0;
  if (!machine.pop(top)) return std::nullopt;
  return top;
}

}  // namespace forksight::symbols
