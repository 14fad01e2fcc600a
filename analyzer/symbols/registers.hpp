// What an unwinder knows at one frame: the x86-64 registers, by DWARF number, and the bytes of the stack. The value of
// a register may be unknown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>

namespace forksight::symbols {

inline constexpr std::size_t kRbp = 6;
inline constexpr std::size_t kRsp = 7;
inline constexpr std::size_t kReturnAddress = 16;
inline constexpr std::size_t kRegisterCount = 17;

using Registers = std::array<std::optional<std::uint64_t>, kRegisterCount>;

// Registers that are kept for each thread of a process. They take half of the memory of `Registers`.
class KeptRegisters {
 public:
  KeptRegisters() = default;
  KeptRegisters(const Registers& registers) {  // implicit, as the conversion back is
    for (std::size_t i = 0; i < kRegisterCount; ++i) set(i, registers[i]);
  }
  operator Registers() const {
    Registers registers;
    for (std::size_t i = 0; i < kRegisterCount; ++i) registers[i] = (*this)[i];
    return registers;
  }
  std::optional<std::uint64_t> operator[](std::size_t number) const {
    return (known_ >> number & 1U) != 0 ? std::optional(values_[number]) : std::nullopt;
  }
  void set(std::size_t number, std::optional<std::uint64_t> value) {
    const std::uint32_t bit = std::uint32_t{1} << number;
    known_ = value ? known_ | bit : known_ & ~bit;
    values_[number] = value.value_or(0);
  }

 private:
  std::array<std::uint64_t, kRegisterCount> values_{};
  std::uint32_t known_ = 0;  // bit N: the value of register N is known
};

// Reads any word of the process's memory; nullopt if it cannot be read.
using WordReader = std::function<std::optional<std::uint64_t>(std::uint64_t address)>;

// The recorded bytes of a stack, from `start` upward.
struct StackBytes {
  std::uint64_t start = 0;
  std::span<const std::byte> bytes;
  // Reads memory outside of `bytes`, or is null. If a thread uses sigaltstack(), its second stack is outside of
  // `bytes`.
  const WordReader* beyond = nullptr;

  std::uint64_t end() const { return start + bytes.size(); }
  std::optional<std::uint64_t> read(std::uint64_t address) const {
    const std::uint64_t offset = address - start;
    if (address < start || bytes.size() < sizeof(std::uint64_t) || offset > bytes.size() - sizeof(std::uint64_t)) {
      return beyond != nullptr ? (*beyond)(address) : std::nullopt;
    }
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
};

}  // namespace forksight::symbols
