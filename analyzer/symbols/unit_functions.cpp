#include "symbols/unit_functions.hpp"

#include <dwarf.h>

#include <algorithm>

namespace forksight::symbols {
namespace {

// No compiler nests entries more deeply than this.
constexpr int kMaxNesting = 256;

void collect_inlined(Dwarf_Die& parent, std::uint64_t address, std::vector<Dwarf_Die>& chain, int depth) {
  Dwarf_Die child;
  if (depth > kMaxNesting || dwarf_child(&parent, &child) != 0) return;
  do {
    const int tag = dwarf_tag(&child);
    const bool is_inlined = tag == DW_TAG_inlined_subroutine;
    if (!is_inlined && tag != DW_TAG_lexical_block && tag != DW_TAG_try_block && tag != DW_TAG_catch_block) continue;
    const int holds = dwarf_haspc(&child, address);
    // A block that has no addresses itself may still contain inlined calls.
    const bool is_open = !is_inlined && holds < 0;
    if (holds <= 0 && !is_open) continue;
    if (is_inlined) chain.push_back(child);
    const std::size_t before = chain.size();
    collect_inlined(child, address, chain, depth + 1);
    if (!is_open || chain.size() > before) return;
  } while (dwarf_siblingof(&child, &child) == 0);
}

}  // namespace

UnitFunctions::UnitFunctions(Dwarf_Die unit) { collect(unit, 0); }

void UnitFunctions::collect(Dwarf_Die& parent, int depth) {
  Dwarf_Die child;
  if (depth > kMaxNesting || dwarf_child(&parent, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram: {
        Dwarf_Addr base = 0;
        Dwarf_Addr start = 0;
        Dwarf_Addr end = 0;
        for (ptrdiff_t at = 0; (at = dwarf_ranges(&child, at, &base, &start, &end)) > 0;) {
          if (start < end) functions_.insert_or_assign(start, Range{end, child});
        }
        collect(child, depth + 1);  // the function may contain classes that have functions too
        break;
      }
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
      case DW_TAG_lexical_block: collect(child, depth + 1); break;
      default: break;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

std::vector<Dwarf_Die> UnitFunctions::chain_at(std::uint64_t address) const {
  std::vector<Dwarf_Die> chain;
  const auto next = functions_.upper_bound(address);
  if (next == functions_.begin() || address >= std::prev(next)->second.end) return chain;
  Dwarf_Die function = std::prev(next)->second.function;
  chain.push_back(function);
  collect_inlined(function, address, chain, 0);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace forksight::symbols
