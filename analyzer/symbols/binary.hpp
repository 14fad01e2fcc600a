// Everything that is known about one ELF file. Each part is read when it is first needed. All addresses are link-time
// addresses.
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

  // The frames of the code at `address`, innermost first. Each inlined call is a separate frame. For a return address,
  // pass the address minus one. The result has at least one frame. A frame has the function "" if the name of the
  // function is not known.
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
