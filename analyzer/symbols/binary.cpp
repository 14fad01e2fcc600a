#include "symbols/binary.hpp"

#include <algorithm>
#include <string_view>

#include "files/costly_files.hpp"
#include "symbols/names.hpp"

namespace forksight::symbols {
namespace {

std::size_t leading_underscores(std::string_view name) { return std::min(name.find_first_not_of('_'), name.size()); }

// True if users know the function by the name of its symbol rather than by its name in the sources. In libc's sources a
// function may be called __GI___clone3 or ___pthread_mutex_lock.
bool is_better_known(std::string_view symbol, std::string_view source_name) {
  if (source_name.empty()) return true;
  if (source_name.find("::") != std::string_view::npos || source_name.front() != '_') return false;
  return leading_underscores(symbol) < leading_underscores(source_name);
}

}  // namespace

const SymbolTable& Binary::symbols() {
  if (!symbols_) {
    const files::FileWork work(elf_->path());
    symbols_.emplace(*elf_);
  }
  return *symbols_;
}

SourceMap& Binary::sources() {
  if (!sources_) {
    const files::FileWork work(elf_->path());
    sources_.emplace(*elf_);
  }
  return *sources_;
}

MachineCode& Binary::code() {
  if (!code_) {
    const files::FileWork work(elf_->path());
    code_.emplace(*elf_);
  }
  return *code_;
}

const Variables& Binary::variables() {
  if (!variables_) {
    const files::FileWork work(elf_->path());
    variables_.emplace(*elf_);
  }
  return *variables_;
}

const std::vector<SourceFrame>& Binary::frames_at(std::uint64_t address) {
  const auto [entry, is_new] = frames_.try_emplace(address);
  if (!is_new) return entry->second;
  const files::FileWork work(elf_->path());
  std::vector<SourceFrame> frames;
  // The debug information of the C library is not read, for three reasons. Its source lines explain nothing to a user,
  // and the symbol table already has the names of the functions. Only some machines have this debug information. This
  // debug information is large and compressed: unpacking takes longer than reading everything else from the file.
  if (!is_c_library(elf_->path()) && elf_->may_read_debug()) frames = sources().find(address);
  if (frames.empty()) frames.emplace_back();
  SourceFrame& outermost = frames.back();
  if (const Symbol* symbol = symbols().find_function(address); symbol != nullptr) {
    std::string name = readable_name(symbol->name);
    if (is_better_known(name, outermost.function)) outermost.function = std::move(name);
  }
  return entry->second = std::move(frames);
}

}  // namespace forksight::symbols
