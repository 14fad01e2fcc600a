#include "loader/next.hpp"

#include <link.h>
#include <string.h>

#include "guest/clock.hpp"
#include "loader/elf_view.hpp"

namespace forksight {

constinit Next g_next = {};
constinit bool g_spin_is_glibcs = false;
constinit ReadClock g_read_clock = nullptr;

namespace {

// The first object after the shim, in the order of the global scope; null if the shim is not in the loader's list.
const link_map* first_after_shim() {
  const link_map* self = _r_debug.r_map;
  while (self != nullptr && self->l_ld != _DYNAMIC) self = self->l_next;
  return self == nullptr ? nullptr : self->l_next;
}

// lock decl (%rdi); jne +0xb; xor %eax, %eax; ret; 8 bytes of padding; pause; cmpl $0, (%rdi); jg -0x17; jmp -0xb
bool is_glibcs_spin_lock(const void* function) {
  constexpr unsigned char kFirst[] = {0xf0, 0xff, 0x0f, 0x75, 0x0b, 0x31, 0xc0, 0xc3};
  constexpr unsigned char kLoop[] = {0xf3, 0x90, 0x83, 0x3f, 0x00, 0x7f, 0xe9, 0xeb, 0xf7};
  const auto* const code = static_cast<const unsigned char*>(function);
  return memcmp(code, kFirst, sizeof kFirst) == 0 && memcmp(code + 16, kLoop, sizeof kLoop) == 0;
}

}  // namespace

std::uint64_t find_next(const char* name) {
  for (const link_map* map = first_after_shim(); map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    if (const std::uint64_t found = view.find_function(name)) return found;
    if (view.has_soname("libc.so.6")) break;
  }
  return 0;
}

bool resolve_next() {
  // At this time (a constructor, or a hook called by an earlier one) the loader has built the list of the start-up
  // objects in the order of the global scope, and no other thread can change it unnoticed: the search stops at libc.
  const link_map* map = first_after_shim();
  if (map == nullptr) return false;
  for (; map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
#define FORKSIGHT_HOOK(name, required, contract) \
  if (g_next.name == nullptr) g_next.name = reinterpret_cast<void*>(view.find_function(#name));
#include "hooks.def"
    if (g_next.real_syscall == nullptr) g_next.real_syscall = reinterpret_cast<void*>(view.find_function("syscall"));
    if (view.has_soname("libc.so.6")) {
      g_read_clock = reinterpret_cast<ReadClock>(view.find_function("clock_gettime"));
      break;
    }
  }
  if (g_next.pthread_spin_lock != nullptr) g_spin_is_glibcs = is_glibcs_spin_lock(g_next.pthread_spin_lock);
  bool complete = true;
#define FORKSIGHT_HOOK(name, required, contract) complete = complete && (!(required) || g_next.name != nullptr);
#include "hooks.def"
  return complete;
}

}  // namespace forksight

// After the list of hooks, which names what must not be called.
#include "guest/house_rules.hpp"
