#include "symbols/variables.hpp"

#include <dwarf.h>
#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "files/budgets.hpp"

namespace forksight::symbols {
namespace {

// Reading this many entries takes about half a second. The names of members are not worth more time, even in the
// largest binaries.
constexpr std::size_t kMaxEntries = 4'000'000;
constexpr int kMaxChain = 64;

std::optional<std::uint64_t> address_of(Dwarf_Die& variable) {
  Dwarf_Attribute attribute;
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_attr(&variable, DW_AT_location, &attribute) == nullptr ||
      dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1) {
    return std::nullopt;
  }
  if (operations[0].atom == DW_OP_addr) return operations[0].number;
  Dwarf_Attribute indexed;
  Dwarf_Addr address = 0;
  if ((operations[0].atom == DW_OP_addrx || operations[0].atom == DW_OP_GNU_addr_index) &&
      dwarf_getlocation_attr(&attribute, operations, &indexed) == 0 && dwarf_formaddr(&indexed, &address) == 0) {
    return address;
  }
  return std::nullopt;
}

// Returns the type of `entry`, without typedefs and qualifiers. Sets `is_opaque` if programs do not name the members of
// the type, for example of pthread_mutex_t.
std::optional<Dwarf_Die> type_of(Dwarf_Die& entry, bool& is_opaque) {
  Dwarf_Die current = entry;
  for (int i = 0; i < kMaxChain; ++i) {
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    if (dwarf_attr_integrate(&current, DW_AT_type, &attribute) == nullptr ||
        dwarf_formref_die(&attribute, &type) == nullptr) {
      return std::nullopt;
    }
    const int tag = dwarf_tag(&type);
    const char* name = dwarf_diename(&type);
    for (const std::string_view prefix : {"pthread_", "sem_t", "mtx_t", "_IO_", "FILE"}) {
      if (name != nullptr && std::string_view(name).starts_with(prefix)) is_opaque = true;
    }
    if (tag != DW_TAG_typedef && tag != DW_TAG_const_type && tag != DW_TAG_volatile_type && tag != DW_TAG_atomic_type) {
      return type;
    }
    current = type;
  }
  return std::nullopt;
}

bool is_in_standard_library(Dwarf_Die& type) {
  Dwarf_Attribute attribute;
  const char* name = dwarf_formstring(dwarf_attr_integrate(&type, DW_AT_linkage_name, &attribute));
  if (name != nullptr && std::string_view(name).starts_with("St")) return true;
  // If the type has no linkage name, the path of the file that declares the type shows whether it belongs to the
  // standard library. The namespace would show that, too, but finding the namespace would mean searching the whole
  // unit.
  const char* file = dwarf_decl_file(&type);
  return file != nullptr && std::string_view(file).find("/c++/") != std::string_view::npos;
}

struct Member {
  Dwarf_Die entry;
  std::uint64_t offset = 0;
};

// Finds the member or base class that contains `offset`.
std::optional<Member> member_at(Dwarf_Die& structure, std::uint64_t offset) {
  std::optional<Member> best;
  Dwarf_Die child;
  if (dwarf_child(&structure, &child) != 0) return std::nullopt;
  do {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_member && tag != DW_TAG_inheritance) continue;
    Dwarf_Attribute attribute;
    Dwarf_Word start = 0;
    if (dwarf_attr(&child, DW_AT_data_member_location, &attribute) != nullptr &&
        dwarf_formudata(&attribute, &start) != 0) {
      continue;
    }
    if (start == 0 && dwarf_hasattr(&child, DW_AT_external)) continue;  // a static member, which has no offset
    Dwarf_Die type;
    Dwarf_Word size = 0;
    if (dwarf_formref_die(dwarf_attr_integrate(&child, DW_AT_type, &attribute), &type) == nullptr ||
        dwarf_aggregate_size(&type, &size) != 0 || offset < start || offset - start >= size) {
      continue;
    }
    if (best) return std::nullopt;  // two members share this place: a union, or an empty base
    best = Member{child, start};
  } while (dwarf_siblingof(&child, &child) == 0);
  return best;
}

// Returns the size of one element of the array. nullopt if the array has more than one dimension.
std::optional<std::uint64_t> element_size(Dwarf_Die& array, Dwarf_Die& element) {
  Dwarf_Die child;
  Dwarf_Die next;
  if (dwarf_child(&array, &child) != 0 || dwarf_siblingof(&child, &next) == 0) return std::nullopt;
  Dwarf_Attribute attribute;
  Dwarf_Word size = 0;
  if (dwarf_formref_die(dwarf_attr_integrate(&array, DW_AT_type, &attribute), &element) == nullptr ||
      dwarf_aggregate_size(&element, &size) != 0 || size == 0) {
    return std::nullopt;
  }
  return size;
}

std::string path_into(Dwarf_Die entry, std::uint64_t offset) {
  std::string path;
  for (int i = 0; i < kMaxChain; ++i) {
    bool is_opaque = false;
    auto type = type_of(entry, is_opaque);
    if (!type || is_opaque) break;
    const int tag = dwarf_tag(&*type);
    if (tag == DW_TAG_array_type) {
      Dwarf_Die element;
      const auto size = element_size(*type, element);
      if (!size || dwarf_tag(&element) == DW_TAG_base_type) break;
      path += fmt::format("[{}]", offset / *size);
      offset %= *size;
      entry = *type;  // the type of an array's entry is the type of its elements
      continue;
    }
    if (tag != DW_TAG_structure_type && tag != DW_TAG_class_type && tag != DW_TAG_union_type) break;
    if (is_in_standard_library(*type)) break;
    const auto member = member_at(*type, offset);
    if (!member) break;
    Dwarf_Die next = member->entry;
    const char* name = dwarf_diename(&next);
    if (name != nullptr && dwarf_tag(&next) == DW_TAG_member) path.append(".").append(name);
    offset -= member->offset;
    entry = next;
  }
  if (offset > 0) path += fmt::format("+{:#x}", offset);
  return path;
}

}  // namespace

Variables::Variables(const ElfModule& module) : budget_(kMaxEntries) {
  Dwarf_Addr bias = 0;
  if (!module.may_read_debug() || dwfl_module_getdwarf(module.dwfl(), &bias) == nullptr) return;
  std::size_t units = 0;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module.dwfl(), unit, &bias)) != nullptr;) {
    if (++units > files::kMaxUnits || budget_ == 0) return;
    Dwarf_Die entries = *unit;
    collect(entries, 0);
  }
}

void Variables::collect(Dwarf_Die& parent, int depth) {
  Dwarf_Die child;
  if (depth > kMaxChain || dwarf_child(&parent, &child) != 0) return;
  do {
    if (budget_ == 0) return;
    --budget_;
    switch (dwarf_tag(&child)) {
      case DW_TAG_variable:
        if (const auto address = address_of(child)) variables_.emplace(*address, child);
        break;
      case DW_TAG_namespace:
      case DW_TAG_subprogram:
      case DW_TAG_lexical_block: collect(child, depth + 1); break;
      default: break;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

std::string Variables::member_path(std::uint64_t start, std::uint64_t offset) const {
  if (const auto found = variables_.find(start); found != variables_.end()) return path_into(found->second, offset);
  return offset > 0 ? fmt::format("+{:#x}", offset) : std::string();
}

}  // namespace forksight::symbols
