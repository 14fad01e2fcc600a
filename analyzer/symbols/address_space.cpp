#include "symbols/address_space.hpp"

#include <algorithm>

#include "files/costly_files.hpp"
#include "symbols/binary_store.hpp"

namespace forksight::symbols {

AddressSpace::AddressSpace(std::vector<Module> modules) {
  std::stable_sort(modules.begin(), modules.end(), [](const Module& a, const Module& b) { return a.start < b.start; });
  for (Module& module : modules) {
    if (module.start >= module.end) continue;
    if (!entries_.empty() && module.start < entries_.back().module.end) continue;
    entries_.push_back({std::move(module), false, nullptr});
  }
}

void AddressSpace::add_limit(std::string sentence) {
  if (said_.insert(sentence).second) limits_.push_back(std::move(sentence));
}

const std::vector<std::string>& AddressSpace::limits() {
  for (const Entry& entry : entries_) {
    if (entry.binary == nullptr) continue;
    for (const std::string& limit : entry.binary->elf().limits()) add_limit(limit);
  }
  if (std::string limit = files::describe_read_limit_of_all(); !limit.empty()) add_limit(std::move(limit));
  return limits_;
}

void AddressSpace::open(Entry& entry) {
  entry.is_opened = true;
  const Module& module = entry.module;
  if (!module.bytes && !module.path.starts_with('/')) return;  // [vdso] and similar names are no files
  if (module.bytes && module.bytes->empty()) return;
  auto binary = open_binary(module);
  if (binary) {
    entry.binary = binary.value();
  } else if (!binary.error().empty()) {
    add_limit(binary.error());
  }
}

Binary* AddressSpace::binary(std::size_t index) {
  Entry& entry = entries_[index];
  if (!entry.is_opened) open(entry);
  return entry.binary;
}

AddressSpace::Place AddressSpace::locate(std::uint64_t address) {
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), address,
                       [](std::uint64_t value, const Entry& entry) { return value < entry.module.start; });
  if (after == entries_.begin()) return {};
  Entry& entry = *std::prev(after);
  if (address >= entry.module.end) return {};
  if (!entry.is_opened) open(entry);
  return {&entry.module, entry.binary, address - entry.module.bias};
}

}  // namespace forksight::symbols
