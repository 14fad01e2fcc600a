#include "scope.hpp"

#include <string.h>

#include "elf_view.hpp"
#include "sys.hpp"

#include "guest.hpp"

namespace forksight {

namespace {

ElfView view_of(const Module& module) {
  return {module.bias, module.dynamic, module.is_permanent ? Trust::kStaysLoaded : Trust::kNone};
}

// A library without a soname is needed by its file name.
bool has_file_name(const Module& module, const char* name) {
  char path[256];
  const std::size_t got = sys::read_memory(reinterpret_cast<const void*>(module.name), path, sizeof path, true);
  const auto* end = static_cast<const char*>(memchr(path, '\0', got));
  const auto* slash = end != nullptr ? strrchr(path, '/') : nullptr;
  return slash != nullptr && strcmp(slash + 1, name) == 0;
}

const Module* find_needed(const char* name) {
  for (std::uint32_t i = 0; i < module_count(); ++i) {
    const Module& module = module_at(i);
    if (module.end != 0 && (view_of(module).has_soname(name) || has_file_name(module, name))) return &module;
  }
  return nullptr;
}

}  // namespace

const Module* find_in_tree(const Module& root, Provides provides) {
  constexpr std::uint32_t kQueue = 48;  // with what is called below: within 1 KiB of the caller's stack
  const Module* queue[kQueue] = {&root};
  std::uint32_t filled = 1;
  for (std::uint32_t at = 0; at < filled; ++at) {
    const Module& module = *queue[at];
    if (module.end == 0) continue;
    if (provides(module)) return &module;
    view_of(module).for_each_needed([&](const char* name) {
      const Module* needed = find_needed(name);
      bool known = needed == nullptr || filled == kQueue;
      for (std::uint32_t i = 0; i < filled && !known; ++i) known = queue[i] == needed;
      if (!known) queue[filled++] = needed;
      return filled < kQueue;
    });
  }
  return nullptr;
}

}  // namespace forksight
