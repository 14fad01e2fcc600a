// What x86-64 machine code says about calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "symbols/elf_module.hpp"

namespace forksight::symbols {

// Does a call instruction end right before `address`?
bool is_after_call(const ElfModule& elf, std::uint64_t address);

// Length of the call through a register or memory (ff /2) at the start of `bytes`, 0 if it is none.
std::size_t indirect_call_length(std::span<const std::byte> bytes);

// The target of the direct call (e8 rel32) that ends right before `address`.
std::optional<std::uint64_t> direct_call_target(const ElfModule& elf, std::uint64_t address);

}  // namespace forksight::symbols
