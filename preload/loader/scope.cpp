#include "loader/scope.hpp"

#include <string.h>

#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "loader/elf_view.hpp"
#include "loader/loaded_object.hpp"
#include "loader/next.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

ElfView view_of(const Module& module) {
  return {module.bias, module.dynamic, module.is_permanent ? Trust::kStaysLoaded : Trust::kNone};
}

// True if the last part of the module's path is `name`. DT_NEEDED names a library without a soname by its file name.
// The path is compared in pieces, because paths are long and stacks may be small.
bool has_file_name(const Module& module, const char* name) {
  char piece[64];
  const char* rest = nullptr;  // the part of `name` that must follow; null: the text since the last slash differs
  for (std::uint64_t at = module.name;; at += sizeof piece) {
    const std::size_t got = read_memory(reinterpret_cast<const void*>(at), piece, sizeof piece);
    for (std::size_t i = 0; i < got; ++i) {
      if (piece[i] == '\0') return rest != nullptr && *rest == '\0';
      if (piece[i] == '/') {
        rest = name;
      } else if (rest != nullptr) {
        rest = piece[i] == *rest ? rest + 1 : nullptr;
      }
    }
    if (got < sizeof piece) return false;
  }
}

__attribute__((noinline)) const Module* find_needed(const char* name) {
  for (std::uint32_t i = 0; i < module_count(); ++i) {
    const Module& module = module_at(i);
    if (module.end != 0 && (view_of(module).has_soname(name) || has_file_name(module, name))) return &module;
  }
  return nullptr;
}

static_assert(kMaxModules <= UINT16_MAX);
std::uint16_t index_of(const Module& module) { return static_cast<std::uint16_t>(&module - &module_at(0)); }

}  // namespace

const Module* find_in_tree(const Module& root, Provides provides) {
  // With this size, the frames of this function and of those that it calls need at most 1 KiB of the caller's stack.
  constexpr std::uint32_t kQueue = 48;
  std::uint16_t queue[kQueue] = {index_of(root)};
  std::uint32_t filled = 1;
  for (std::uint32_t at = 0; at < filled; ++at) {
    const Module& module = module_at(queue[at]);
    if (module.end == 0) continue;
    if (provides(module)) return &module;
    view_of(module).for_each_needed([&](const char* name) {
      const Module* const needed = find_needed(name);
      bool known = needed == nullptr || filled == kQueue;
      for (std::uint32_t i = 0; i < filled && !known; ++i) known = queue[i] == index_of(*needed);
      if (!known) queue[filled++] = index_of(*needed);
      return filled < kQueue;
    });
  }
  return nullptr;
}

std::uint64_t find_by_loader(std::uint64_t caller, const char* name) {
  using Search = void* (*)(void* handle, const char* name);
  const link_map* const object = find_object(caller).map;
  const auto search = reinterpret_cast<Search>(find_next("dlsym"));
  return object == nullptr || search == nullptr
             ? 0
             : reinterpret_cast<std::uint64_t>(search(const_cast<link_map*>(object), name));
}

}  // namespace forksight
