// All that is known about one ELF file, each part read when it is first asked for. Link-time addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/cfi.hpp"
#include "symbols/elf_module.hpp"
#include "symbols/machine_code.hpp"
#include "symbols/source_map.hpp"
#include "symbols/symbol_table.hpp"
#include "symbols/variables.hpp"

namespace forksight::symbols {

class Binary {
 public:
  explicit Binary(std::unique_ptr<ElfModule> elf) : elf_(std::move(elf)), cfi_(*elf_) {}

  const ElfModule& elf() const { return *elf_; }
  Cfi& cfi() { return cfi_; }
  const SymbolTable& symbols();
  SourceMap& sources();
  MachineCode& code();
  const Variables& variables();

  // What stands at `address` (for a return address: one less), inlined calls expanded, innermost first. One frame at
  // least; its function is "" where no symbol covers the address.
  const std::vector<SourceFrame>& frames_at(std::uint64_t address);

 private:
  std::unique_ptr<ElfModule> elf_;
  Cfi cfi_;
  std::optional<SymbolTable> symbols_;
  std::optional<SourceMap> sources_;
  std::optional<MachineCode> code_;
  std::optional<Variables> variables_;
  std::unordered_map<std::uint64_t, std::vector<SourceFrame>> frames_;
};

}  // namespace forksight::symbols
