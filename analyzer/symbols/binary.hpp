// All that is known about one ELF file; each part is read when it is first needed. Link-time addresses.
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

  // The code at `address` (for a return address: one less), with inlined calls as frames of their own, innermost first.
  // At least one frame; its function is "" if no symbol covers the address.
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
