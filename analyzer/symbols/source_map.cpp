#include "symbols/source_map.hpp"

#include <dwarf.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "files/budgets.hpp"
#include "symbols/dwarf_names.hpp"

namespace forksight::symbols {
namespace {

__attribute__((noreturn)) void end_without_memory() { std::exit(3); }

struct Location {
  std::string file;
  int line = 0;
};

// True if the last call of libdw failed because there was no memory. libdw publishes the text of this error, and not
// its number.
bool has_lacked_memory() {
  const int error = dwarf_errno();
  return error != 0 && std::string_view(dwarf_errmsg(error)) == "out of memory";
}

Location location_of(ElfModule& module, Dwarf_Die& unit, std::uint64_t address) {
  Location location;
  Dwarf_Line* line = dwarf_getsrc_die(&unit, address);
  if (line == nullptr && has_lacked_memory()) {
    module.add_limit(
        fmt::format("{}: its line table takes too much memory; some source lines are missing", module.path()));
  }
  if (line == nullptr) return location;
  dwarf_lineno(line, &location.line);
  if (location.line > 0) location.file = absolute_source_path(unit, dwarf_linesrc(line, nullptr, nullptr));
  return location;
}

// Returns the place where an inlined function is called.
Location call_site_of(Dwarf_Die& unit, Dwarf_Die& inlined) {
  Location location;
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_line, &attribute), &value) == 0) {
    location.line = static_cast<int>(value);
  }
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_file, &attribute), &value) == 0 &&
      dwarf_getsrcfiles(&unit, &files, &count) == 0 && value < count) {
    location.file = absolute_source_path(unit, dwarf_filesrc(files, value, nullptr, nullptr));
  }
  return location;
}

// Returns the unit that has the entries of `unit`. Split debug information puts the entries into another file. The line
// table of `unit` stays in the file of `unit`.
Dwarf_Die unit_with_entries(ElfModule& module, Dwarf_Die unit) {
  Dwarf_Attribute attribute;
  const auto text = [&](unsigned name) { return dwarf_formstring(dwarf_attr(&unit, name, &attribute)); };
  const char* name = text(DW_AT_dwo_name);
  if (name == nullptr) name = text(DW_AT_GNU_dwo_name);
  if (name == nullptr || !module.accept_split_file(name, text(DW_AT_comp_dir))) return unit;
  Dwarf_Die split;
  std::uint8_t type = 0;
  if (dwarf_cu_info(unit.cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) == 0 &&
      type == DW_UT_skeleton && split.addr != nullptr) {
    return split;
  }
  return unit;
}

}  // namespace

SourceMap::SourceMap(ElfModule& module) : module_(module) {
  if (!module.may_read_debug()) return;
  Dwarf_Addr bias = 0;  // stays zero, because libdwfl loads the module at its link-time address
  Dwarf* const dwarf = dwfl_module_getdwarf(module.dwfl(), &bias);
  has_dwarf_ = dwarf != nullptr;
  // The default handler also prints a line, although the command may still succeed without this file.
  if (has_dwarf_) dwarf_new_oom_handler(dwarf, end_without_memory);
}

// Indexes the units by address. Files without .debug_aranges need this index, for example those that Clang makes.
void SourceMap::index_units() {
  indexed_ = true;
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = nullptr;
  std::size_t count = 0;
  while ((unit = dwfl_module_nextcu(module_.dwfl(), unit, &bias)) != nullptr) {
    if (++count > files::kMaxUnits) {
      module_.add_limit(fmt::format("{}: its debug information has more than {} units; some source lines are missing",
                                    module_.path(), files::kMaxUnits));
      return;
    }
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;) {
      if (start < end) units_.insert_or_assign(start, Range{end, *unit});
    }
  }
}

std::optional<Dwarf_Die> SourceMap::unit_at(std::uint64_t address) {
  if (!has_dwarf_) return std::nullopt;
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(module_.dwfl(), address, &bias);
  if (unit != nullptr && dwarf_haspc(unit, address) > 0) return *unit;
  if (!indexed_) index_units();
  const auto next = units_.upper_bound(address);
  if (next != units_.begin() && address < std::prev(next)->second.end) return std::prev(next)->second.unit;
  return std::nullopt;
}

std::vector<SourceFrame> SourceMap::find(std::uint64_t address) {
  std::vector<SourceFrame> frames;
  std::optional<Dwarf_Die> line_unit = unit_at(address);
  if (!line_unit) return frames;
  Dwarf_Die unit = unit_with_entries(module_, *line_unit);
  Location location = location_of(module_, *line_unit, address);

  const auto found = functions_.try_emplace(unit.addr, unit).first;
  for (Dwarf_Die& entry : found->second.chain_at(address)) {
    SourceFrame frame;
    bool needs_symbol = false;
    frame.function = dwarf_function_name(entry, needs_symbol);
    frame.inlined = dwarf_tag(&entry) == DW_TAG_inlined_subroutine;
    if (!frame.inlined && needs_symbol) frame.function.clear();
    frame.file = location.file;
    frame.line = location.line;
    if (frame.inlined) location = call_site_of(unit, entry);
    frames.push_back(std::move(frame));
  }
  if (!frames.empty()) return frames;
  SourceFrame frame;  // DWARF has no function for this address, for example in assembler code
  frame.file = location.file;
  frame.line = location.line;
  frames.push_back(std::move(frame));
  return frames;
}

}  // namespace forksight::symbols
