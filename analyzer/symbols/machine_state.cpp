#include "symbols/machine_state.hpp"

#include <algorithm>

namespace forksight::symbols {
namespace {

// The order in which instructions number registers, as DWARF numbers.
constexpr std::array<std::size_t, 16> kDwarfNumbers = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr std::array<std::size_t, 9> kLostInCalls = {0, 1, 2, 4, 5, 8, 9, 10, 11};
constexpr std::uint64_t kWordBytes = 8;
// A condition on the thread's own frames decides a jump; one on other memory does not.
constexpr std::uint64_t kMostStack = std::uint64_t{1} << 20U;

struct Place {
  std::size_t number = 0;  // DWARF
  std::uint32_t bits = 0;
  bool is_high = false;  // ah, bh, ch, dh
};

std::optional<Place> place_of(ZydisRegister name) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
  if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) return std::nullopt;
  Place place;
  place.number = kDwarfNumbers[static_cast<std::size_t>(whole - ZYDIS_REGISTER_RAX)];
  place.bits = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, name);
  place.is_high = name >= ZYDIS_REGISTER_AH && name <= ZYDIS_REGISTER_BH;
  return place;
}

std::uint64_t cut(std::uint64_t value, std::uint32_t bits) {
  return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t extend_sign(std::uint64_t value, std::uint32_t bits) {
  if (bits >= 64) return value;
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  return (cut(value, bits) ^ sign) - sign;
}

bool is_written(const ZydisDecodedOperand& operand) { return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0; }

}  // namespace

std::optional<FullInstruction> decode_fully(std::span<const std::byte> bytes) {
  static const ZydisDecoder kDecoder = [] {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return decoder;
  }();
  FullInstruction instruction;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&kDecoder, bytes.data(), bytes.size(), &instruction.decoded,
                                           instruction.operands.data()))) {
    return std::nullopt;
  }
  return instruction;
}

MachineState::MachineState(const Registers& registers, const WordReader& memory) : memory_(memory) {
  std::copy_n(registers.begin(), values_.size(), values_.begin());
  stack_ = values_[kRsp].value_or(0);
}

std::optional<std::uint64_t> MachineState::read(std::uint64_t address) const {
  const std::uint64_t shift = address % kWordBytes * 8;
  const auto aligned = [&](std::uint64_t at) {
    const auto store = stores_.find(at);
    return store != stores_.end() ? store->second : memory_(at);
  };
  const auto low = aligned(address - address % kWordBytes);
  if (shift == 0 || !low) return low;
  const auto high = aligned(address - address % kWordBytes + kWordBytes);
  return *low >> shift | high.value_or(0) << (64 - shift);
}

std::optional<std::uint64_t> MachineState::address_of(const ZydisDecodedOperand& operand, std::uint64_t next) const {
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) return std::nullopt;
  const auto& memory = operand.mem;
  if (memory.segment == ZYDIS_REGISTER_FS || memory.segment == ZYDIS_REGISTER_GS) return std::nullopt;
  std::uint64_t address = memory.disp.has_displacement ? static_cast<std::uint64_t>(memory.disp.value) : 0;
  if (memory.base == ZYDIS_REGISTER_RIP) {
    address += next;
  } else if (memory.base != ZYDIS_REGISTER_NONE) {
    const auto place = place_of(memory.base);
    if (!place || !values_[place->number]) return std::nullopt;
    address += *values_[place->number];
  }
  if (memory.index == ZYDIS_REGISTER_NONE) return address;
  const auto place = place_of(memory.index);
  if (!place || !values_[place->number]) return std::nullopt;
  return address + *values_[place->number] * memory.scale;
}

std::optional<std::uint64_t> MachineState::value_of(const ZydisDecodedOperand& operand, std::uint64_t next) const {
  if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return cut(operand.imm.value.u, operand.size);
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
    const auto place = place_of(operand.reg.value);
    if (!place || !values_[place->number]) return std::nullopt;
    return cut(*values_[place->number] >> (place->is_high ? 8U : 0U), place->bits);
  }
  const auto address = address_of(operand, next);
  const auto value = address && operand.size <= 64 ? read(*address) : std::nullopt;
  return value ? std::optional(cut(*value, operand.size)) : std::nullopt;
}

bool MachineState::is_shared(const ZydisDecodedOperand& operand, std::uint64_t next) const {
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
    const auto place = place_of(operand.reg.value);
    return !place || is_shared_[place->number];
  }
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) return false;
  const auto address = address_of(operand, next);
  return !address || *address < stack_ || *address - stack_ >= kMostStack;
}

std::optional<bool> MachineState::takes(const FullInstruction& jump) const {
  if (!is_zero_) return std::nullopt;
  if (jump.is(ZYDIS_MNEMONIC_JZ)) return *is_zero_;
  if (jump.is(ZYDIS_MNEMONIC_JNZ)) return !*is_zero_;
  return std::nullopt;
}

MachineState::Result MachineState::result_of(const FullInstruction& instruction, std::uint64_t next) const {
  const ZydisDecodedOperand& to = instruction.operands[0];
  const ZydisDecodedOperand& from = instruction.operands[1];
  Result result;
  if (instruction.decoded.operand_count_visible < 2) return result;
  result.is_shared = is_shared(from, next);
  switch (instruction.decoded.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
      result.value = value_of(from, next);
      // a constant of 4 bytes that goes into 8 keeps its sign
      if (result.value && from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        result.value = cut(static_cast<std::uint64_t>(from.imm.value.s), to.size);
      }
      break;
    case ZYDIS_MNEMONIC_MOVZX: result.value = value_of(from, next); break;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
      result.value = value_of(from, next);
      if (result.value) result.value = cut(extend_sign(*result.value, from.size), to.size);
      break;
    case ZYDIS_MNEMONIC_LEA:
      result.value = address_of(from, next);
      result.is_shared = false;
      break;
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR: {
      const bool is_same = to.type == ZYDIS_OPERAND_TYPE_REGISTER && from.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                           to.reg.value == from.reg.value;
      if (is_same && (instruction.is(ZYDIS_MNEMONIC_XOR) || instruction.is(ZYDIS_MNEMONIC_SUB))) return {0, false};
      const auto one = value_of(to, next);
      auto other = value_of(from, next);
      if (other && from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) other = static_cast<std::uint64_t>(from.imm.value.s);
      if (!one || !other) break;
      result.is_shared = result.is_shared || is_shared(to, next);
      if (instruction.is(ZYDIS_MNEMONIC_XOR)) result.value = *one ^ *other;
      if (instruction.is(ZYDIS_MNEMONIC_SUB)) result.value = *one - *other;
      if (instruction.is(ZYDIS_MNEMONIC_ADD)) result.value = *one + *other;
      if (instruction.is(ZYDIS_MNEMONIC_AND)) result.value = *one & *other;
      if (instruction.is(ZYDIS_MNEMONIC_OR)) result.value = *one | *other;
      result.value = cut(*result.value, to.size);
      break;
    }
    default: break;
  }
  return result;
}

void MachineState::set(const ZydisDecodedOperand& operand, const Result& result, std::uint64_t next) {
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
    const auto place = place_of(operand.reg.value);
    if (!place) return;
    auto& whole = values_[place->number];
    is_shared_[place->number] = result.is_shared;
    if (!result.value || place->is_high) {
      whole.reset();
    } else if (place->bits >= 32 || !whole) {
      whole = cut(*result.value, place->bits);
    } else {
      whole = (*whole & ~cut(~std::uint64_t{0}, place->bits)) | cut(*result.value, place->bits);
    }
    return;
  }
  const auto address = address_of(operand, next);
  if (!address) return;
  const std::uint64_t first = *address - *address % kWordBytes;
  const std::uint64_t shift = *address % kWordBytes * 8;
  if (shift + operand.size <= 64) {
    const auto before = read(first);
    const std::uint64_t mask = cut(~std::uint64_t{0}, operand.size) << shift;
    const bool is_known = result.value && (before || operand.size == 64);
    stores_[first] =
        is_known ? std::optional((before.value_or(0) & ~mask) | (*result.value << shift & mask)) : std::nullopt;
    return;
  }
  for (std::uint64_t at = first; at < *address + operand.size / 8; at += kWordBytes) stores_[at].reset();
}

void MachineState::set_zero_flag(const FullInstruction& instruction, std::uint64_t next) {
  const auto* const flags = instruction.decoded.cpu_flags;
  const ZyanU32 changed = flags == nullptr ? 0 : flags->modified | flags->set_0 | flags->set_1 | flags->undefined;
  if ((changed & ZYDIS_CPUFLAG_ZF) == 0) return;
  is_zero_.reset();
  const ZydisDecodedOperand& to = instruction.operands[0];
  const ZydisDecodedOperand& from = instruction.operands[1];
  const bool is_test = instruction.is(ZYDIS_MNEMONIC_TEST);
  if (!is_test && !instruction.is(ZYDIS_MNEMONIC_CMP)) return;
  const auto one = value_of(to, next);
  auto other = value_of(from, next);
  if (other && from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    other = cut(static_cast<std::uint64_t>(from.imm.value.s), to.size);
  }
  if (!one || !other || is_shared(to, next) || is_shared(from, next)) return;
  is_zero_ = is_test ? (*one & *other) == 0 : *one == *other;
}

void MachineState::execute(const FullInstruction& instruction, std::uint64_t next) {
  const ZydisDecodedOperand& first = instruction.operands[0];
  if (instruction.is(ZYDIS_MNEMONIC_PUSH)) {
    const Result pushed{first.size == 64 ? value_of(first, next) : std::nullopt, is_shared(first, next)};
    auto& sp = values_[kRsp];
    if (sp) *sp -= kWordBytes;
    if (sp) stores_[*sp] = pushed.value;
    return;
  }
  if (instruction.is(ZYDIS_MNEMONIC_POP)) {
    auto& sp = values_[kRsp];
    const Result popped{sp ? read(*sp) : std::nullopt, false};
    if (sp) *sp += kWordBytes;
    set(first, popped, next);
    return;
  }
  if (instruction.is(ZYDIS_MNEMONIC_LEAVE)) {
    values_[kRsp] = values_[kRbp];
    auto& sp = values_[kRsp];
    values_[kRbp] = sp ? read(*sp) : std::nullopt;
    if (sp) *sp += kWordBytes;
    return;
  }
  set_zero_flag(instruction, next);
  const Result result = result_of(instruction, next);
  const bool is_conditional = instruction.decoded.meta.category == ZYDIS_CATEGORY_CMOV;
  // The addresses of operands are those before the instruction, so memory comes first.
  for (std::size_t i = 0; i < instruction.decoded.operand_count; ++i) {
    const ZydisDecodedOperand& operand = instruction.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || !is_written(operand)) continue;
    set(operand, i == 0 && !is_conditional ? result : Result{}, next);
  }
  for (std::size_t i = 0; i < instruction.decoded.operand_count; ++i) {
    const ZydisDecodedOperand& operand = instruction.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER || !is_written(operand)) continue;
    set(operand, i == 0 && !is_conditional ? result : Result{}, next);
  }
}

void MachineState::pass_call() {
  for (const std::size_t number : kLostInCalls) {
    values_[number].reset();
    is_shared_[number] = false;
  }
  is_zero_.reset();
}

}  // namespace forksight::symbols
