#include "symbols/symbol_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>

#include "files/budgets.hpp"
#include "files/costly_files.hpp"

namespace forksight::symbols {
namespace {

// In hand-written assembler, the symbol of a function often has no size. An address that is farther than this from such
// a symbol does not get the symbol's name.
constexpr std::uint64_t kMaxUnsizedBytes = 4096;

// In a hostile file, millions of symbols may share one name with a length of a gigabyte. So only the first bytes of a
// name are read.
std::string_view bounded_name(const char* name) {
  constexpr std::size_t kMaxNameBytes = 4096;
  return {name, strnlen(name, kMaxNameBytes)};
}

// Ranks the symbols of one address. A smaller value is a better name. These rules apply, the most important first:
// exported names are better than local names; public names are better than internal names ("__GI_", "@"); fewer leading
// underscores are better, but the "_" of a mangled name ("_Z") does not count; shorter names are better.
auto rank(const Symbol& symbol) {
  const std::string_view name = bounded_name(symbol.name);
  const std::size_t underscores = std::min(name.find_first_not_of('_'), name.size());
  const bool is_internal = name.starts_with("__GI_") || name.find('@') != std::string_view::npos;
  return std::tuple(symbol.binding == STB_LOCAL, is_internal, name.starts_with("_Z") ? 0 : underscores, name.size(),
                    name);
}

}  // namespace

SymbolTable::SymbolTable(ElfModule& module) : path_(module.path()) {
  int count = dwfl_module_getsymtab(module.dwfl());
  const auto most = static_cast<int>(module.may_read_code() ? files::kMaxSymbols : files::kMaxSymbolsOfCostlyFile);
  if (count > most) {
    module.add_limit(fmt::format("{}: has {} symbols; forksight reads the first {}, and some functions have no names",
                                 module.path(), count, most));
    count = most;
  }
  for (int i = 1; i < count; ++i) {
    GElf_Sym entry;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    const char* name = dwfl_module_getsym_info(module.dwfl(), i, &entry, &address, &section, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || section == SHN_UNDEF || section == SHN_ABS) continue;
    Symbol symbol{address, entry.st_size, name, static_cast<std::uint8_t>(GELF_ST_BIND(entry.st_info))};
    const auto type = GELF_ST_TYPE(entry.st_info);
    if (type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && module.is_executable(address))) {
      functions_.symbols.push_back(symbol);
    } else if ((type == STT_OBJECT || type == STT_COMMON) && symbol.size > 0) {
      objects_.symbols.push_back(symbol);
    }
  }
  functions_.finish();
  objects_.finish();
}

void SymbolTable::Sorted::finish() {
  std::sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) { return a.start < b.start; });
  // The best name of an address comes last. No linker gives thousands of names to one address. If an address has more
  // than kMaxSorted names, only the best name is moved to its place, because sorting all of them takes too long.
  constexpr std::ptrdiff_t kMaxSorted = 4096;
  const auto is_worse = [](const Symbol& a, const Symbol& b) { return rank(b) < rank(a); };
  for (auto first = symbols.begin(); first != symbols.end();) {
    const auto last =
        std::find_if(first, symbols.end(), [&](const Symbol& symbol) { return symbol.start != first->start; });
    if (last - first > kMaxSorted) {
      std::iter_swap(std::max_element(first, last, is_worse), last - 1);
    } else if (last - first > 1) {
      std::sort(first, last, is_worse);
    }
    first = last;
  }
  reach.reserve(symbols.size());
  std::uint64_t farthest = 0;
  for (const Symbol& symbol : symbols) {
    const std::uint64_t end = symbol.start + symbol.size;
    if (end >= symbol.start) farthest = std::max(farthest, end);
    reach.push_back(farthest);
  }
}

const Symbol* SymbolTable::Sorted::find(std::uint64_t address) const {
  const auto after = std::upper_bound(symbols.begin(), symbols.end(), address,
                                      [](std::uint64_t value, const Symbol& symbol) { return value < symbol.start; });
  const Symbol* best = nullptr;
  const Symbol* unsized = nullptr;
  constexpr std::size_t kMaxSteps = 65'536;  // no compiler makes more symbols that overlap
  std::size_t steps = 0;
  for (auto at = static_cast<std::size_t>(after - symbols.begin()); at-- > 0 && ++steps < kMaxSteps;) {
    const Symbol& symbol = symbols[at];
    if (best != nullptr && symbol.start < best->start) break;
    if (symbol.size == 0) {
      const bool is_nearest = unsized == nullptr && reach[at] <= symbol.start;
      if (is_nearest && best == nullptr && address - symbol.start < kMaxUnsizedBytes) unsized = &symbol;
    } else if (address - symbol.start < symbol.size && (best == nullptr || symbol.size < best->size)) {
      best = &symbol;
    }
    if (reach[at] <= address && best == nullptr) break;  // no symbol before this one reaches `address`
  }
  return best != nullptr ? best : unsized;
}

const Symbol* SymbolTable::Sorted::find_named(std::string_view name, const std::string& path) const {
  if (by_name.empty()) {
    const files::FileWork work(path);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const std::string_view symbol = bounded_name(symbols[i].name);
      const auto [entry, is_new] = by_name.try_emplace(symbol.substr(0, symbol.find('@')), i);
      const bool was_local = !is_new && symbols[entry->second].binding == STB_LOCAL;
      if (was_local && symbols[i].binding != STB_LOCAL) entry->second = i;
    }
  }
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &symbols[found->second];
}

}  // namespace forksight::symbols
