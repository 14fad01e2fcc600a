#include "symbols/dwarf_names.hpp"

#include <dwarf.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "symbols/names.hpp"

namespace forksight::symbols {
namespace {

const char* string_attribute(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  return dwarf_formstring(dwarf_attr_integrate(&die, name, &attribute));
}

bool is_cplusplus(Dwarf_Die& die) {
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return false;
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x002b:  // DW_LANG_C_plus_plus_17
    case 0x002c:  // DW_LANG_C_plus_plus_20
      return true;
    default: return false;
  }
}

// Finds the entry of the function's declaration in the source. `die` may be a copy or an inlined instance of the
// function.
Dwarf_Die declaration_of(Dwarf_Die die) {
  for (int i = 0; i < 8; ++i) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    if (dwarf_attr(&die, DW_AT_abstract_origin, &attribute) == nullptr &&
        dwarf_attr(&die, DW_AT_specification, &attribute) == nullptr) {
      break;
    }
    if (dwarf_formref_die(&attribute, &next) == nullptr) break;
    die = next;
  }
  return die;
}

std::string qualified_name(Dwarf_Die function, std::string name) {
  Dwarf_Die declaration = declaration_of(function);
  Dwarf_Die* raw = nullptr;
  const int count = dwarf_getscopes_die(&declaration, &raw);
  const std::unique_ptr<Dwarf_Die, decltype(&std::free)> scopes(raw, &std::free);
  for (int i = 1; i < count; ++i) {
    Dwarf_Die& scope = raw[i];
    const char* scope_name = dwarf_diename(&scope);
    switch (dwarf_tag(&scope)) {
      case DW_TAG_namespace:
        if (Dwarf_Attribute inlined; scope_name != nullptr && dwarf_attr(&scope, DW_AT_export_symbols, &inlined)) break;
        name = std::string(scope_name != nullptr ? scope_name : "(anonymous namespace)") + "::" + name;
        break;
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
        // GCC calls the class of a lambda "<lambda(int)>". Clang gives the class no name.
        if (scope_name == nullptr || std::string_view(scope_name).starts_with("<lambda")) scope_name = "{lambda}";
        name = std::string(scope_name) + "::" + name;
        break;
      case DW_TAG_subprogram:
        if (scope_name != nullptr) name = std::string(scope_name) + "::" + name;
        break;
      default: break;
    }
  }
  return name;
}

}  // namespace

std::string dwarf_function_name(Dwarf_Die& function, bool& needs_symbol) {
  needs_symbol = false;
  const char* const name = string_attribute(function, DW_AT_name);
  for (unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    const char* const linkage = string_attribute(function, attribute);
    if (linkage == nullptr) continue;
    // The C++ runtime cannot demangle Rust's own mangling (v0).
    const bool is_rust = std::string_view(linkage).starts_with("_R") && name != nullptr;
    return is_rust ? qualified_name(function, name) : readable_name(linkage);
  }
  if (name == nullptr) return {};
  if (!is_cplusplus(function)) return readable_name(name);
  needs_symbol = true;
  return qualified_name(function, name);
}

std::string absolute_source_path(Dwarf_Die& unit, const char* path) {
  if (path == nullptr || *path == '\0') return {};
  std::filesystem::path file(path);
  if (file.is_relative()) {
    Dwarf_Attribute attribute;
    const char* folder = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
    if (folder != nullptr) file = std::filesystem::path(folder) / file;
  }
  return file.lexically_normal().string();
}

}  // namespace forksight::symbols
