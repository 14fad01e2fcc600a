// What x86-64 machine code says about calls.
#pragma once

#include <cstdint>
#include <optional>

#include "symbols/elf_module.hpp"

namespace forksight::symbols {

// Does a call instruction end right before `address`?
bool is_after_call(const ElfModule& elf, std::uint64_t address);

// The target of the direct call (e8 rel32) that ends right before `address`.
std::optional<std::uint64_t> direct_call_target(const ElfModule& elf, std::uint64_t address);

}  // namespace forksight::symbols
