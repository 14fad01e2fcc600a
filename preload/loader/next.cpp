#include "loader/next.hpp"

#include <link.h>
#include <string.h>

#include "guest/clock.hpp"
#include "loader/elf_view.hpp"
#include "loader/libc.hpp"
#include "loader/modules.hpp"

namespace forksight {

constinit Next g_next = {};
constinit bool g_spin_is_glibcs = false;
constinit ReadClock g_read_clock = nullptr;
constinit bool g_may_read_clock = true;

namespace {

// The shim in the loader's list; null if it is not there.
const link_map* find_self() {
  const link_map* self = _r_debug.r_map;
  while (self != nullptr && self->l_ld != _DYNAMIC) self = self->l_next;
  return self;
}

// The first object after it, in the order of the global scope.
const link_map* first_after_shim() {
  const link_map* const self = find_self();
  return self == nullptr ? nullptr : self->l_next;
}

// lock decl (%rdi); jne +0xb; xor %eax, %eax; ret; 8 bytes of padding; pause; cmpl $0, (%rdi); jg -0x17; jmp -0xb
bool is_glibcs_spin_lock(const void* function) {
  constexpr unsigned char kFirst[] = {0xf0, 0xff, 0x0f, 0x75, 0x0b, 0x31, 0xc0, 0xc3};
  constexpr unsigned char kLoop[] = {0xf3, 0x90, 0x83, 0x3f, 0x00, 0x7f, 0xe9, 0xeb, 0xf7};
  const auto* const code = static_cast<const unsigned char*>(function);
  return memcmp(code, kFirst, sizeof kFirst) == 0 && memcmp(code + 16, kLoop, sizeof kLoop) == 0;
}

constexpr const char kLibc[] = "libc.so.6";

// Which definition a reference to a version of the owner's is bound to, in this object.
Versions versions_in(bool is_owner) { return is_owner ? Versions::kDefault : Versions::kNone; }

}  // namespace

std::uint64_t find_next(const char* name) { return find_next_of(name, kLibc); }

std::uint64_t find_next_of(const char* name, const char* owner) {
  for (const link_map* map = first_after_shim(); map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    const bool is_owner = view.has_soname(owner);
    if (const std::uint64_t found = view.find_function(name, versions_in(is_owner))) return found;
    if (is_owner || map == last_at_startup()) break;
  }
  return 0;
}

std::uint64_t find_in_libc(const char* name) {
  for (const link_map* map = first_after_shim(); map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    if (view.has_soname(kLibc)) return view.find_function(name);
  }
  return 0;
}

std::uint64_t find_hook(const char* name) {
  const link_map* const self = find_self();
  if (self == nullptr) return 0;
  return ElfView(self->l_addr, self->l_ld, Trust::kStaysLoaded).find_function(name, Versions::kAny);
}

bool leads_to_libc(const char* name, const link_map* from) {
  for (const link_map* map = from; map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr || map->l_ld == _DYNAMIC) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    if (view.find_function(name) != 0) return view.has_soname(kLibc);
    if (map == last_at_startup()) break;
  }
  return false;
}

bool has_elder() {
  for (const link_map* map = _r_debug.r_map; map != nullptr && map->l_ld != _DYNAMIC; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    if (ElfView(map->l_addr, map->l_ld, Trust::kStaysLoaded).find_function("forksight_lock_waiting") != 0) return true;
  }
  return false;
}

bool resolve_next() {
  // At this time (a constructor, or a hook called by an earlier one) the loader has built the list of the start-up
  // objects in the order of the global scope, and no other thread can change it unnoticed: the search stops at libc.
  const link_map* map = first_after_shim();
  if (map == nullptr) return false;
  for (; map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    const bool is_libc = view.has_soname(kLibc);
    const Versions which = versions_in(is_libc);
#define FORKSIGHT_HOOK(name, required, probe, versions, prototype, contract) \
  if (g_next.name == nullptr) g_next.name = reinterpret_cast<void*>(view.find_function(#name, which));
#include "hooks.def"
    if (g_next.real_syscall == nullptr)
      g_next.real_syscall = reinterpret_cast<void*>(view.find_function("syscall", which));
    if (is_libc) {
      g_read_clock = reinterpret_cast<ReadClock>(view.find_function("clock_gettime"));
      identify_libc(view);
      break;
    }
  }
  if (g_next.pthread_spin_lock != nullptr) g_spin_is_glibcs = is_glibcs_spin_lock(g_next.pthread_spin_lock);
  bool complete = true;
#define FORKSIGHT_HOOK(name, required, probe, versions, prototype, contract) \
  complete = complete && (!(required) || g_next.name != nullptr);
#include "hooks.def"
  return complete;
}

}  // namespace forksight

// After the list of hooks, which names what must not be called.
#include "guest/house_rules.hpp"
