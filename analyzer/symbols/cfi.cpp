#include "symbols/cfi.hpp"

#include <dwarf.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "files/costly_files.hpp"
#include "symbols/expression.hpp"

namespace forksight::symbols {
namespace {

// An expression is computed once for each frame of each thread, and each operation may read memory of the process.
// Compilers write at most a dozen operations.
constexpr std::size_t kMaxOperations = 256;

}  // namespace

std::optional<Cfi::Rule> Cfi::read_rule(Dwarf_Frame* frame, int number) {
  Rule rule;
  std::array<Dwarf_Op, 3> room{};
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_register(frame, number, room.data(), &operations, &count) != 0) return rule;
  if (count > kMaxOperations) return std::nullopt;
  if (count == 0) {
    rule.kind = operations == nullptr ? Rule::Kind::kSame : Rule::Kind::kUndefined;
    return rule;
  }
  if (operations[0].atom == DW_OP_regx) {
    rule.kind = Rule::Kind::kRegister;
    rule.number = operations[0].number;
    return rule;
  }
  if (operations[0].atom >= DW_OP_reg0 && operations[0].atom <= DW_OP_reg31) {
    rule.kind = Rule::Kind::kRegister;
    rule.number = operations[0].atom - DW_OP_reg0;
    return rule;
  }
  rule.kind = Rule::Kind::kMemory;
  if (operations[count - 1].atom == DW_OP_stack_value) {
    rule.kind = Rule::Kind::kValue;
    --count;
  }
  rule.operations.assign(operations, operations + count);
  return rule;
}

bool Cfi::read_row(Dwarf_CFI* cfi, std::uint64_t pc, std::uint64_t& start, Row& row) {
  if (cfi == nullptr) return false;
  Dwarf_Frame* raw = nullptr;
  if (dwarf_cfi_addrframe(cfi, pc, &raw) != 0) return false;
  const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(raw, &std::free);
  Dwarf_Addr row_start = 0;
  Dwarf_Addr row_end = 0;
  const int column = dwarf_frame_info(raw, &row_start, &row_end, &row.is_signal);
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (column < 0 || column >= static_cast<int>(kRegisterCount) || row_start > pc || row_end <= pc ||
      dwarf_frame_cfa(raw, &operations, &count) != 0 || count == 0 || count > kMaxOperations) {
    return false;
  }
  start = row_start;
  row.end = row_end;
  row.is_known = true;
  row.return_column = static_cast<std::size_t>(column);
  row.cfa.assign(operations, operations + count);
  for (std::size_t i = 0; i < kRegisterCount; ++i) {
    std::optional<Rule> rule = read_rule(raw, static_cast<int>(i));
    if (!rule) return false;
    row.rules[i] = std::move(*rule);
  }
  return true;
}

const Cfi::Row& Cfi::row_at(std::uint64_t pc) {
  auto next = rows_.upper_bound(pc);
  if (next != rows_.begin()) {
    const auto& [start, row] = *std::prev(next);
    if (pc < row.end) return row;
  }
  const files::FileWork work(module_.path());
  Row row;
  std::uint64_t start = pc;
  Dwarf_Addr bias = 0;  // stays zero, because libdwfl loads the module at its link-time address
  const bool is_known =
      (module_.may_read_frames() && read_row(dwfl_module_eh_cfi(module_.dwfl(), &bias), pc, start, row)) ||
      (module_.may_read_debug() && read_row(dwfl_module_dwarf_cfi(module_.dwfl(), &bias), pc, start, row));
  if (!is_known) {
    row = Row{};
    start = pc;
    row.end = pc + 1;
  }
  return rows_.insert_or_assign(start, std::move(row)).first->second;
}

bool Cfi::is_signal_frame(std::uint64_t pc) {
  const Row& row = row_at(pc);
  return row.is_known && row.is_signal;
}

std::optional<std::uint64_t> Cfi::frame_address(std::uint64_t pc, const Registers& registers, const StackBytes& stack) {
  const Row& row = row_at(pc);
  if (!row.is_known) return std::nullopt;
  ExpressionContext context{registers, stack, std::nullopt};
  return evaluate(row.cfa, context);
}

std::optional<std::uint64_t> Cfi::stack_depth(std::uint64_t pc) {
  const Row& row = row_at(pc);
  if (!row.is_known || row.cfa.size() != 1) return std::nullopt;
  const Dwarf_Op& op = row.cfa[0];
  if (op.atom == DW_OP_bregx && op.number == kRsp) return op.number2;
  if (op.atom == DW_OP_breg0 + kRsp) return op.number;
  return std::nullopt;
}

std::uint64_t Cfi::saved_bytes(std::uint64_t pc) {
  std::uint64_t lowest = 0;
  for (const Rule& rule : row_at(pc).rules) {
    if (rule.kind != Rule::Kind::kMemory || rule.operations.size() != 2) continue;
    if (rule.operations[0].atom != DW_OP_call_frame_cfa || rule.operations[1].atom != DW_OP_plus_uconst) continue;
    const std::uint64_t below = 0 - rule.operations[1].number;
    if (below < 4096) lowest = std::max(lowest, below);
  }
  return lowest;
}

Step Cfi::step(std::uint64_t pc, Registers& registers, const StackBytes& stack) {
  const Row& row = row_at(pc);
  if (!row.is_known) return Step::kNoRule;
  const Rule& return_rule = row.rules[row.return_column];
  if (return_rule.kind == Rule::Kind::kUndefined) return Step::kOutermost;

  ExpressionContext context{registers, stack, std::nullopt};
  const auto obstacle = [&] { return context.missing_address >= stack.end() ? Step::kBeyondBytes : Step::kUnknown; };
  context.cfa = evaluate(row.cfa, context);
  if (!context.cfa) return obstacle();

  Registers caller{};
  for (std::size_t i = 0; i < kRegisterCount; ++i) {
    const Rule& rule = row.rules[i];
    switch (rule.kind) {
      case Rule::Kind::kUndefined: break;
      case Rule::Kind::kSame: caller[i] = registers[i]; break;
      case Rule::Kind::kRegister:
        if (rule.number < kRegisterCount) caller[i] = registers[rule.number];
        break;
      case Rule::Kind::kMemory: {
        const auto address = evaluate(rule.operations, context);
        if (address) caller[i] = stack.read(*address);
        if (address && !caller[i]) context.missing_address = *address;
        break;
      }
      case Rule::Kind::kValue: caller[i] = evaluate(rule.operations, context); break;
    }
    if (i == row.return_column && !caller[i]) return obstacle();
  }
  caller[kReturnAddress] = caller[row.return_column];
  if (!caller[kRsp]) caller[kRsp] = context.cfa;
  registers = caller;
  return Step::kCaller;
}

}  // namespace forksight::symbols
