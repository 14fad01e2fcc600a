#include "symbols/instruction.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>

namespace forksight::symbols {
namespace {

ZydisDecoder make_decoder(bool is_minimal) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, is_minimal ? ZYAN_TRUE : ZYAN_FALSE);
  return decoder;
}

struct Operation {
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  bool is(ZydisMnemonic mnemonic) const { return instruction.mnemonic == mnemonic; }
  bool is_register(std::size_t operand, ZydisRegister number) const {
    return instruction.operand_count_visible > operand && operands[operand].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operands[operand].reg.value == number;
  }
  std::optional<std::int64_t> constant(std::size_t operand) const {
    if (instruction.operand_count_visible <= operand || operands[operand].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
      return std::nullopt;
    }
    return operands[operand].imm.value.s;
  }
};

bool is_push_of_saved(const Operation& operation) {
  for (const ZydisRegister saved :
       {ZYDIS_REGISTER_RBX, ZYDIS_REGISTER_R12, ZYDIS_REGISTER_R13, ZYDIS_REGISTER_R14, ZYDIS_REGISTER_R15}) {
    if (operation.is(ZYDIS_MNEMONIC_PUSH) && operation.is_register(0, saved)) return true;
  }
  return false;
}

}  // namespace

std::optional<Instruction> decode_instruction(std::span<const std::byte> bytes, std::uint64_t address) {
  static const ZydisDecoder kDecoder = make_decoder(true);
  ZydisDecodedInstruction decoded;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&kDecoder, nullptr, bytes.data(), bytes.size(), &decoded))) {
    return std::nullopt;
  }
  Instruction instruction;
  instruction.length = decoded.length;
  const std::uint64_t end = address + decoded.length;
  const bool is_direct = decoded.raw.imm[0].is_relative == ZYAN_TRUE;
  if (decoded.mnemonic == ZYDIS_MNEMONIC_CALL) {
    instruction.kind = Instruction::Kind::kCall;
  } else if (decoded.mnemonic == ZYDIS_MNEMONIC_JMP || is_direct) {
    instruction.kind = Instruction::Kind::kJump;
  } else {
    return instruction;
  }
  const auto& modrm = decoded.raw.modrm;
  if (is_direct) {
    instruction.target = end + static_cast<std::uint64_t>(decoded.raw.imm[0].value.s);
  } else if (modrm.mod == 0 && modrm.rm == 5) {  // relative to rip
    instruction.slot = end + static_cast<std::uint64_t>(decoded.raw.disp.value);
  }
  return instruction;
}

std::optional<std::uint64_t> prologue_subtraction(std::span<const std::byte> bytes) {
  static const ZydisDecoder kDecoder = make_decoder(false);
  constexpr std::size_t kMaxPrologueBytes = 64;
  bytes = bytes.first(std::min(bytes.size(), kMaxPrologueBytes));
  // A function with a frame pointer starts with "push %rbp; mov %rsp,%rbp", and then saves registers.
  enum class Stage { kStart, kPushed, kSaving, kBody } stage = Stage::kStart;
  Operation operation;
  while (ZYAN_SUCCESS(ZydisDecoderDecodeFull(&kDecoder, bytes.data(), bytes.size(), &operation.instruction,
                                             operation.operands.data()))) {
    bytes = bytes.subspan(operation.instruction.length);
    const auto category = operation.instruction.meta.category;
    if (category == ZYDIS_CATEGORY_CALL || category == ZYDIS_CATEGORY_RET) break;  // the prologue is over
    if (operation.is_register(0, ZYDIS_REGISTER_RSP)) {
      const auto constant = operation.constant(1);
      if (operation.is(ZYDIS_MNEMONIC_AND)) return std::nullopt;
      if (operation.is(ZYDIS_MNEMONIC_SUB) && !constant) return std::nullopt;
      if (operation.is(ZYDIS_MNEMONIC_SUB)) return static_cast<std::uint64_t>(*constant);
      // Compilers write "add $-128", because it is shorter than "sub $128".
      if (operation.is(ZYDIS_MNEMONIC_ADD) && constant == -128) return 128;
    }
    if (stage == Stage::kStart && operation.is(ZYDIS_MNEMONIC_ENDBR64)) continue;
    if (stage == Stage::kStart && operation.is(ZYDIS_MNEMONIC_PUSH) && operation.is_register(0, ZYDIS_REGISTER_RBP)) {
      stage = Stage::kPushed;
    } else if (stage == Stage::kPushed && operation.is(ZYDIS_MNEMONIC_MOV) &&
               operation.is_register(0, ZYDIS_REGISTER_RBP) && operation.is_register(1, ZYDIS_REGISTER_RSP)) {
      stage = Stage::kSaving;
    } else if (stage == Stage::kSaving && is_push_of_saved(operation)) {
      continue;
    } else if (stage == Stage::kSaving && operation.is(ZYDIS_MNEMONIC_PUSH) &&
               operation.is_register(0, ZYDIS_REGISTER_RAX)) {
      return 8;  // Clang reserves one word on the stack by "push %rax"
    } else {
      stage = Stage::kBody;
    }
  }
  return 0;
}

}  // namespace forksight::symbols
